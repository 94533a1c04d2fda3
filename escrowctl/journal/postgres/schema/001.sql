-- The tables of a journal, version 1. `records` is append-only and hash-chained, and its last record is the head.
-- The tables from `entries` to `totals` are derived from it in the same transaction. `plans` has the rows of batches
-- that are not sent yet. `senders` has a lease for each process that writes, and `locks` what these processes lock.
CREATE SCHEMA main;
CREATE TABLE main.journal (
  id text NOT NULL, version integer NOT NULL, CONSTRAINT encoding_is_utf8 CHECK (getdatabaseencoding() = 'UTF8')
);
INSERT INTO main.journal VALUES (gen_random_uuid()::text, 1);
CREATE TABLE main.records (
  sequence bigint PRIMARY KEY,
  entry bigint NOT NULL,
  kind text NOT NULL,
  at text COLLATE "C" NOT NULL,
  facts text NOT NULL,
  digest bytea NOT NULL
);
CREATE INDEX records_of_entry ON main.records (entry, sequence);
CREATE TABLE main.entries (
  number bigint PRIMARY KEY,
  sent_at text COLLATE "C" NOT NULL,
  operation text NOT NULL,
  state text NOT NULL,
  resource_id text,
  result_id text,
  reference text,
  profile text NOT NULL,
  remark text,
  batch text,
  line bigint,
  origin text,
  records bigint NOT NULL,
  counted_on text COLLATE "C" NOT NULL,
  latest text COLLATE "C" NOT NULL
);
CREATE INDEX entries_by_origin ON main.entries (origin) WHERE origin IS NOT NULL;
CREATE INDEX entries_by_batch ON main.entries (batch, line) WHERE batch IS NOT NULL;
CREATE INDEX entries_by_result ON main.entries (result_id) WHERE result_id IS NOT NULL;
CREATE TABLE main.keys (key bigint NOT NULL, entry bigint NOT NULL, PRIMARY KEY (key, entry));
CREATE TABLE main.totals (
  operation text NOT NULL,
  currency text NOT NULL,
  day text COLLATE "C" NOT NULL,
  service text NOT NULL,
  site text NOT NULL,
  amount text NOT NULL,
  PRIMARY KEY (operation, currency, day, service, site)
);
CREATE TABLE main.plans (
  batch text COLLATE "C" NOT NULL,
  row bigint NOT NULL,
  content text NOT NULL,
  sender text,
  PRIMARY KEY (batch, row)
);
CREATE INDEX plans_by_sender ON main.plans (batch, sender) WHERE sender IS NOT NULL;
CREATE TABLE main.senders (
  id text PRIMARY KEY,
  host text NOT NULL,
  process bigint NOT NULL,
  operator text NOT NULL,
  attempt_seconds double precision NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE TABLE main.locks (name text PRIMARY KEY, sender text NOT NULL);
CREATE INDEX locks_of_sender ON main.locks (sender);
CREATE FUNCTION main.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'records of a journal are only added: % is refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER records_are_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON main.records
FOR EACH STATEMENT EXECUTE FUNCTION main.refuse_change();
CREATE FUNCTION main.require_lease(wanted text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM main.senders WHERE id = wanted AND expires_at > clock_timestamp()) THEN
    RAISE EXCEPTION 'the lease of this process has lapsed' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
END $$;
