"""The tables of the sandbox's store."""

FORMAT = 7
"""`PRAGMA user_version` of a store with these tables."""

TABLES = """
CREATE TABLE sandbox (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  identity TEXT NOT NULL,
  api_key TEXT NOT NULL,
  created_at TEXT NOT NULL,
  clock_ahead_ms INTEGER NOT NULL DEFAULT 0,
  seed INTEGER, -- null if ids and random numbers do not come from a seed
  draws INTEGER NOT NULL DEFAULT 0
) STRICT

CREATE TABLE transactions (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  document TEXT NOT NULL,
  status TEXT NOT NULL AS (json_extract(document, '$.status')),
  expires_at TEXT AS (json_extract(document, '$.expires_at')),
  auto_release_at TEXT AS (json_extract(document, '$.auto_release_at')),
  moves_at TEXT AS (min(ifnull(expires_at, auto_release_at), ifnull(auto_release_at, expires_at)))
) STRICT

CREATE INDEX held_by_time ON transactions (moves_at) WHERE status = 'held' AND moves_at IS NOT NULL

CREATE TABLE ledger_entries (
  entry INTEGER PRIMARY KEY,
  transaction_id TEXT NOT NULL REFERENCES transactions (id),
  move TEXT NOT NULL,
  account TEXT NOT NULL,
  currency TEXT NOT NULL,
  units INTEGER NOT NULL CHECK (units <> 0),
  posted_at TEXT NOT NULL,
  UNIQUE (transaction_id, move, account)
) STRICT

-- The money of a transaction leaves the hold only once, by whichever move.
CREATE UNIQUE INDEX a_hold_is_left_once ON ledger_entries (transaction_id)
  WHERE account = 'hold' AND units < 0

CREATE TRIGGER ledger_entries_are_never_updated BEFORE UPDATE ON ledger_entries
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END

CREATE TRIGGER ledger_entries_are_never_deleted BEFORE DELETE ON ledger_entries
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END

CREATE TABLE webhook_endpoints (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  secret TEXT NOT NULL,
  document TEXT NOT NULL
) STRICT

CREATE TABLE events (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL AS (json_extract(body, '$.type')),
  transaction_id TEXT NOT NULL REFERENCES transactions (id),
  sequence INTEGER NOT NULL,
  triggered INTEGER NOT NULL,
  body TEXT NOT NULL,
  created_at TEXT NOT NULL AS (json_extract(body, '$.timestamp')),
  UNIQUE (transaction_id, sequence)
) STRICT

-- `failures` counts from the first attempt or the last replay. Only a waiting delivery has a next attempt.
CREATE TABLE deliveries (
  position INTEGER PRIMARY KEY,
  event INTEGER NOT NULL REFERENCES events (position),
  endpoint_id TEXT NOT NULL REFERENCES webhook_endpoints (id),
  state TEXT NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  next_attempt_at TEXT,
  UNIQUE (event, endpoint_id)
) STRICT

CREATE INDEX deliveries_by_time ON deliveries (next_attempt_at) WHERE next_attempt_at IS NOT NULL

CREATE TABLE delivery_attempts (
  position INTEGER PRIMARY KEY,
  delivery INTEGER NOT NULL REFERENCES deliveries (position),
  attempted_at TEXT NOT NULL,
  status INTEGER,
  error TEXT,
  milliseconds INTEGER NOT NULL
) STRICT

CREATE INDEX attempts_by_delivery ON delivery_attempts (delivery)

CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT

-- The reply to each write with an Idempotency-Key, if the variant `idempotent` is on.
CREATE TABLE replies (key TEXT PRIMARY KEY, request TEXT NOT NULL, reply TEXT NOT NULL) STRICT
"""
"""SQL statements, separated by blank lines."""
