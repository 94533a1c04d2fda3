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
, site TEXT, verified INTEGER NOT NULL DEFAULT 0, origin TEXT, seal TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO "entries" VALUES(1,'create_transaction','http://127.0.0.1:4999','127.0.0.1','POST','http://127.0.0.1:4999/api/v1/transactions','{"amount":7,"currency":"EUR"}','a5e18b33-e49d-4f0a-ae55-5ee0887b8c1e','{"amount":7E0,"currency":"EUR"}',NULL,'7','EUR','order-7',NULL,'','operator',1,'11111111-e49d-4f0a-ae55-5ee0887b8c1e','2026-11-21T08:14:04.000Z','done','200',200,'tx_9','{"id":"tx_9","status":"held","amount":7,"currency":"EUR"}',0,'2026-11-21T08:14:05.000Z','http://localhost:4999',0,NULL,'47fb0bed01a526498f95a8093015af90a0627b0d35d80be9902decf42c741422');
INSERT INTO "entries" VALUES(2,'create_transaction','http://127.0.0.1:4999','127.0.0.1','POST','http://127.0.0.1:4999/api/v1/transactions','{"amount":2500,"currency":"EUR"}','13cf43c9-7d7f-4092-bfd8-c9691909fc97','{"amount":25E2,"currency":"EUR"}',NULL,'2500','EUR',NULL,NULL,'','operator',1,'22222222-e49d-4f0a-ae55-5ee0887b8c1e','2026-11-21T08:14:08.000Z','unknown','the connection broke before an answer came',NULL,NULL,NULL,0,'2026-11-21T08:14:09.000Z','http://localhost:4999',0,NULL,'f10e24a55ddbae5f4bc88e32b2c7c6c73f780cb766815ac87f0811a3a60a1f22');
INSERT INTO "entries" VALUES(3,'release_transaction','http://127.0.0.1:4999','127.0.0.1','PUT','http://127.0.0.1:4999/api/v1/transactions/tx_Ab/release',NULL,'35e0b128-949d-4e2c-94e5-9e5ee73adde0','tx_Ab','tx_Ab','100','USD',NULL,NULL,'','operator',1,'33333333-e49d-4f0a-ae55-5ee0887b8c1e','2026-11-21T08:14:12.000Z','done','200',200,NULL,NULL,0,'2026-11-21T08:14:13.000Z','http://localhost:4999',0,NULL,'5aedc422d7ca66b4950a7e9fe3084663e5f8ab68ef9d478de601f958a7730bfb');
CREATE TABLE guards (token INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (token, entry)) STRICT, WITHOUT ROWID;
INSERT INTO "guards" VALUES(1267079250942107253,2);
INSERT INTO "guards" VALUES(1272577819338560371,1);
INSERT INTO "guards" VALUES(2712844997062932369,3);
INSERT INTO "guards" VALUES(2885500156456008596,3);
INSERT INTO "guards" VALUES(2898745141526651822,1);
INSERT INTO "guards" VALUES(4017974200259688638,3);
INSERT INTO "guards" VALUES(4167688322986426717,2);
INSERT INTO "guards" VALUES(4913787290731144667,1);
INSERT INTO "guards" VALUES(5025004943394873820,2);
INSERT INTO "guards" VALUES(5914112559950245193,3);
INSERT INTO "guards" VALUES(6514937376518326957,1);
INSERT INTO "guards" VALUES(7213191239950896990,2);
CREATE TABLE guards_again (token INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (token, entry))
  STRICT, WITHOUT ROWID;
INSERT INTO "guards_again" VALUES(1267079250942107253,2);
INSERT INTO "guards_again" VALUES(1272577819338560371,1);
INSERT INTO "guards_again" VALUES(2712844997062932369,3);
INSERT INTO "guards_again" VALUES(2885500156456008596,3);
INSERT INTO "guards_again" VALUES(2898745141526651822,1);
INSERT INTO "guards_again" VALUES(4017974200259688638,3);
INSERT INTO "guards_again" VALUES(4167688322986426717,2);
INSERT INTO "guards_again" VALUES(4913787290731144667,1);
INSERT INTO "guards_again" VALUES(5025004943394873820,2);
INSERT INTO "guards_again" VALUES(5914112559950245193,3);
INSERT INTO "guards_again" VALUES(6514937376518326957,1);
INSERT INTO "guards_again" VALUES(7213191239950896990,2);
CREATE TABLE journal (id TEXT NOT NULL, made_at TEXT NOT NULL) STRICT;
INSERT INTO "journal" VALUES('5ae90b8f-d700-4e22-ac5c-05a45453d13d','2026-11-21T08:14:01.000Z');
CREATE TABLE records (
  sequence INTEGER PRIMARY KEY,
  entry INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at TEXT NOT NULL,
  facts TEXT NOT NULL,
  digest TEXT NOT NULL
) STRICT;
INSERT INTO "records" VALUES(1,1,'intent','2026-11-21T08:14:04.000Z','{"amount":"7","attempt":1,"body":"{\"amount\":7,\"currency\":\"EUR\"}","currency":"EUR","despite":"","idempotency_key":"a5e18b33-e49d-4f0a-ae55-5ee0887b8c1e","likeness":"{\"amount\":7E0,\"currency\":\"EUR\"}","method":"POST","operation":"create_transaction","operator":"operator","profile":"127.0.0.1","reason":null,"reference":"order-7","request_id":"11111111-e49d-4f0a-ae55-5ee0887b8c1e","resource_id":null,"service":"http://127.0.0.1:4999","site":"http://localhost:4999","url":"http://127.0.0.1:4999/api/v1/transactions"}','83d4ac2a4ad639e971ba05b02460636151754e95c99fb184a4c1ae1f7aa0a194');
INSERT INTO "records" VALUES(2,1,'verdict','2026-11-21T08:14:05.000Z','{"detail":"200","http_status":200,"may_repeat":0,"reply":"{\"id\":\"tx_9\",\"status\":\"held\",\"amount\":7,\"currency\":\"EUR\"}","result_id":"tx_9","state":"done","verified":0}','323e61b839829b21b7e4dc77468a6f064be8def4013a7d260cade0d25e8d2f6b');
INSERT INTO "records" VALUES(3,2,'intent','2026-11-21T08:14:08.000Z','{"amount":"2500","attempt":1,"body":"{\"amount\":2500,\"currency\":\"EUR\"}","currency":"EUR","despite":"","idempotency_key":"13cf43c9-7d7f-4092-bfd8-c9691909fc97","likeness":"{\"amount\":25E2,\"currency\":\"EUR\"}","method":"POST","operation":"create_transaction","operator":"operator","profile":"127.0.0.1","reason":null,"reference":null,"request_id":"22222222-e49d-4f0a-ae55-5ee0887b8c1e","resource_id":null,"service":"http://127.0.0.1:4999","site":"http://localhost:4999","url":"http://127.0.0.1:4999/api/v1/transactions"}','eaaf70a434a0d1b48fb6d2d79db262b034fa22c0e102432af007d53a49b8ac3e');
INSERT INTO "records" VALUES(4,2,'verdict','2026-11-21T08:14:09.000Z','{"detail":"the connection broke before an answer came","http_status":null,"may_repeat":0,"reply":null,"result_id":null,"state":"unknown","verified":0}','577818ddda101959c0f8805286e209668551a1b3a0d3a120f0fd2635237ee284');
INSERT INTO "records" VALUES(5,3,'intent','2026-11-21T08:14:12.000Z','{"amount":"100","attempt":1,"body":null,"currency":"USD","despite":"","idempotency_key":"35e0b128-949d-4e2c-94e5-9e5ee73adde0","likeness":"tx_Ab","method":"PUT","operation":"release_transaction","operator":"operator","profile":"127.0.0.1","reason":null,"reference":null,"request_id":"33333333-e49d-4f0a-ae55-5ee0887b8c1e","resource_id":"tx_Ab","service":"http://127.0.0.1:4999","site":"http://localhost:4999","url":"http://127.0.0.1:4999/api/v1/transactions/tx_Ab/release"}','c55e0ab934829d76e9ab39ba78ca5ed1df76fe46122831e8add9b87135ff0c54');
INSERT INTO "records" VALUES(6,3,'verdict','2026-11-21T08:14:13.000Z','{"detail":"200","http_status":200,"may_repeat":0,"reply":null,"result_id":null,"state":"done","verified":0}','13cf3cd3c8a2a825b9d5bd73eb5e32c5c837ad690a29804b389b373d0c77fa96');
CREATE INDEX records_of_entry ON records (entry);
CREATE INDEX entries_by_state ON entries (state) WHERE state IN ('in_flight', 'unknown');
CREATE INDEX entries_by_money ON entries (operation, currency, sent_at) WHERE amount IS NOT NULL;
CREATE INDEX entries_by_origin ON entries (origin) WHERE origin IS NOT NULL;
COMMIT;
PRAGMA user_version = 3;
