BEGIN TRANSACTION;
CREATE TABLE entries (
  number INTEGER PRIMARY KEY,
  operation TEXT NOT NULL,
  service TEXT NOT NULL,
  profile TEXT NOT NULL,
  method TEXT NOT NULL,
  url TEXT NOT NULL,
  body TEXT,
  idempotency_key TEXT NOT NULL,
  likeness TEXT NOT NULL,
  resource_id TEXT,
  amount TEXT,
  currency TEXT,
  reference TEXT,
  reason TEXT,
  despite TEXT NOT NULL,
  operator TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  sent_at TEXT NOT NULL,
  state TEXT NOT NULL,
  detail TEXT NOT NULL,
  http_status INTEGER,
  result_id TEXT,
  reply TEXT,
  may_repeat INTEGER NOT NULL,
  settled_at TEXT
) STRICT;
INSERT INTO "entries" VALUES(1,'create_transaction','http://127.0.0.1:4999','127.0.0.1','POST','http://127.0.0.1:4999/api/v1/transactions','{"amount":7,"currency":"EUR"}','a5e18b33-e49d-4f0a-ae55-5ee0887b8c1e','{"amount":7E0,"currency":"EUR"}',NULL,'7','EUR',NULL,NULL,'','operator',1,'2147a153-429b-42ac-8c4c-8beaa7f7d3a3','2026-11-21T08:14:30.042Z','done','200',200,'tx_9','{"id":"tx_9","status":"held","amount":7,"currency":"EUR"}',0,'2026-11-21T08:14:30.071Z');
INSERT INTO "entries" VALUES(2,'create_transaction','http://127.0.0.1:4999','127.0.0.1','POST','http://127.0.0.1:4999/api/v1/transactions','{"amount":2500,"currency":"EUR"}','13cf43c9-7d7f-4092-bfd8-c9691909fc97','{"amount":25E2,"currency":"EUR"}',NULL,'2500','EUR',NULL,NULL,'','operator',1,'d09d19cc-5363-4de2-a840-7f54cf05757e','2026-11-21T08:14:30.166Z','unknown','the connection broke before an answer came (Server disconnected without sending a response)',NULL,NULL,NULL,0,'2026-11-21T08:14:30.305Z');
INSERT INTO "entries" VALUES(3,'release_transaction','http://127.0.0.1:4999','127.0.0.1','PUT','http://127.0.0.1:4999/api/v1/transactions/tx_1/release',NULL,'35e0b128-949d-4e2c-94e5-9e5ee73adde0','tx_1','tx_1','100','USD',NULL,NULL,'','operator',1,'419d639e-81af-43a6-b2bd-35718638b939','2026-11-21T08:14:30.395Z','done','200',200,'tx_1','{"id":"tx_1","status":"held","amount":100,"currency":"USD"}',0,'2026-11-21T08:14:30.845Z');
CREATE TABLE journal (id TEXT NOT NULL, made_at TEXT NOT NULL) STRICT;
INSERT INTO "journal" VALUES('017afef0-4013-4d3e-8dc3-87840c4402af','2026-11-21T08:14:30.018Z');
CREATE TABLE records (
  sequence INTEGER PRIMARY KEY,
  entry INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at TEXT NOT NULL,
  facts TEXT NOT NULL,
  digest TEXT NOT NULL
) STRICT;
INSERT INTO "records" VALUES(1,1,'intent','2026-11-21T08:14:30.042Z','{"amount":"7","attempt":1,"body":"{\"amount\":7,\"currency\":\"EUR\"}","currency":"EUR","despite":"","idempotency_key":"a5e18b33-e49d-4f0a-ae55-5ee0887b8c1e","likeness":"{\"amount\":7E0,\"currency\":\"EUR\"}","method":"POST","operation":"create_transaction","operator":"operator","profile":"127.0.0.1","reason":null,"reference":null,"request_id":"2147a153-429b-42ac-8c4c-8beaa7f7d3a3","resource_id":null,"service":"http://127.0.0.1:4999","url":"http://127.0.0.1:4999/api/v1/transactions"}','95d6667a21c4498d16e12f0e5ba2c3919f242376cb0d2f9d893969903a2fa812');
INSERT INTO "records" VALUES(2,1,'verdict','2026-11-21T08:14:30.071Z','{"detail":"200","http_status":200,"may_repeat":0,"reply":"{\"id\":\"tx_9\",\"status\":\"held\",\"amount\":7,\"currency\":\"EUR\"}","result_id":"tx_9","state":"done"}','f470d99bf788bf77cddedc804e9c4ceca9d5309b48bb8719da71cf83aa57cfbb');
INSERT INTO "records" VALUES(3,2,'intent','2026-11-21T08:14:30.166Z','{"amount":"2500","attempt":1,"body":"{\"amount\":2500,\"currency\":\"EUR\"}","currency":"EUR","despite":"","idempotency_key":"13cf43c9-7d7f-4092-bfd8-c9691909fc97","likeness":"{\"amount\":25E2,\"currency\":\"EUR\"}","method":"POST","operation":"create_transaction","operator":"operator","profile":"127.0.0.1","reason":null,"reference":null,"request_id":"d09d19cc-5363-4de2-a840-7f54cf05757e","resource_id":null,"service":"http://127.0.0.1:4999","url":"http://127.0.0.1:4999/api/v1/transactions"}','f7735c3fd29731c8b08344fa31a5c58040db695687ebab5c4a94f4f4c9612ab3');
INSERT INTO "records" VALUES(4,2,'verdict','2026-11-21T08:14:30.305Z','{"detail":"the connection broke before an answer came (Server disconnected without sending a response)","http_status":null,"may_repeat":0,"reply":null,"result_id":null,"state":"unknown"}','64176bc8cab1a43969b2d77d47f1d05d3691588d7ed5dc568fcb7a61a90823ca');
INSERT INTO "records" VALUES(5,3,'intent','2026-11-21T08:14:30.395Z','{"amount":"100","attempt":1,"body":null,"currency":"USD","despite":"","idempotency_key":"35e0b128-949d-4e2c-94e5-9e5ee73adde0","likeness":"tx_1","method":"PUT","operation":"release_transaction","operator":"operator","profile":"127.0.0.1","reason":null,"reference":null,"request_id":"419d639e-81af-43a6-b2bd-35718638b939","resource_id":"tx_1","service":"http://127.0.0.1:4999","url":"http://127.0.0.1:4999/api/v1/transactions/tx_1/release"}','444820dadbe817086a901680dc7b8677c6ca5bef9e960ed761db1a7e16a84ad6');
INSERT INTO "records" VALUES(6,3,'verdict','2026-11-21T08:14:30.845Z','{"detail":"200","http_status":200,"may_repeat":0,"reply":"{\"id\":\"tx_1\",\"status\":\"held\",\"amount\":100,\"currency\":\"USD\"}","result_id":"tx_1","state":"done"}','f63091d4789ab48b346a2ce2296d7148e3ccfa4d86b2ab41081e2598c485eaab');
CREATE INDEX records_of_entry ON records (entry);
CREATE UNIQUE INDEX entries_by_key ON entries (service, idempotency_key);
CREATE INDEX entries_by_likeness ON entries (service, operation, likeness);
CREATE INDEX entries_by_reference ON entries (service, reference) WHERE reference IS NOT NULL;
CREATE INDEX entries_by_state ON entries (state) WHERE state IN ('in_flight', 'unknown');
COMMIT;
PRAGMA user_version = 1;
