-- A store of version 2, dumped from one that the code of version 2 had made and used:
-- one transaction held, one released, and two webhook endpoints.
PRAGMA application_id = 1702060914;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE ledger_entries (
      entry INTEGER PRIMARY KEY,
      transaction_id TEXT NOT NULL REFERENCES transactions (id),
      move TEXT NOT NULL,
      account TEXT NOT NULL,
      currency TEXT NOT NULL,
      units INTEGER NOT NULL CHECK (units <> 0),
      posted_at TEXT NOT NULL,
      UNIQUE (transaction_id, move, account)
    ) STRICT;
INSERT INTO "ledger_entries" VALUES(1,'tx_7K2M9QHD','create','payer:usr_PAYER001','USD',-1000000,'2026-11-21T03:12:45.000Z');
INSERT INTO "ledger_entries" VALUES(2,'tx_7K2M9QHD','create','hold','USD',1000000,'2026-11-21T03:12:45.000Z');
INSERT INTO "ledger_entries" VALUES(3,'tx_90A1B2C3','create','payer:usr_PAYER001','EUR',-50000,'2026-11-21T03:12:46.000Z');
INSERT INTO "ledger_entries" VALUES(4,'tx_90A1B2C3','create','hold','EUR',50000,'2026-11-21T03:12:46.000Z');
INSERT INTO "ledger_entries" VALUES(5,'tx_90A1B2C3','release','hold','EUR',-50000,'2026-11-21T03:12:47.000Z');
INSERT INTO "ledger_entries" VALUES(6,'tx_90A1B2C3','release','payee:usr_PAYEE001','EUR',50000,'2026-11-21T03:12:47.000Z');
CREATE TABLE sandbox (
      only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
      identity TEXT NOT NULL,
      api_key TEXT NOT NULL
    ) STRICT;
INSERT INTO "sandbox" VALUES(1,'sbx_DCMPK04R','sk_sandbox_000102030405060708090a0b0c0d0e0f');
CREATE TABLE transactions (
      position INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      status TEXT NOT NULL,
      amount TEXT NOT NULL,
      currency TEXT NOT NULL,
      payer TEXT NOT NULL REFERENCES users (id),
      payee TEXT NOT NULL REFERENCES users (id),
      extra TEXT NOT NULL,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    ) STRICT;
INSERT INTO "transactions" VALUES(1,'tx_7K2M9QHD','held','100','USD','usr_PAYER001','usr_PAYEE001','{}','2026-11-21T03:12:45.000Z','2026-11-21T03:12:45.000Z');
INSERT INTO "transactions" VALUES(2,'tx_90A1B2C3','released','5','EUR','usr_PAYER001','usr_PAYEE001','{}','2026-11-21T03:12:46.000Z','2026-11-21T03:12:47.000Z');
CREATE TABLE users (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      email TEXT NOT NULL,
      status TEXT NOT NULL,
      created_at TEXT NOT NULL
    ) STRICT;
INSERT INTO "users" VALUES('usr_PAYER001','Sandbox payer','payer@example.com','active','2026-11-21T03:12:44.000Z');
INSERT INTO "users" VALUES('usr_PAYEE001','Sandbox payee','payee@example.com','active','2026-11-21T03:12:44.000Z');
CREATE TABLE webhook_endpoints (
      position INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      url TEXT NOT NULL,
      events TEXT,
      description TEXT,
      status TEXT NOT NULL,
      secret TEXT NOT NULL,
      extra TEXT NOT NULL,
      created_at TEXT NOT NULL
    ) STRICT;
INSERT INTO "webhook_endpoints" VALUES(1,'wh_0000000A','http://127.0.0.1:3000/hooks',NULL,NULL,'enabled','whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=','{}','2026-11-21T03:12:48.000Z');
INSERT INTO "webhook_endpoints" VALUES(2,'wh_0000000B','http://127.0.0.1:3000/hooks','["transaction.released"]',NULL,'enabled','whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=','{}','2026-11-21T03:12:49.000Z');
CREATE UNIQUE INDEX a_hold_is_left_once ON ledger_entries (transaction_id)
      WHERE account = 'hold' AND units < 0;
CREATE TRIGGER ledger_entries_are_never_updated BEFORE UPDATE ON ledger_entries
      BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_entries_are_never_deleted BEFORE DELETE ON ledger_entries
      BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
COMMIT;
