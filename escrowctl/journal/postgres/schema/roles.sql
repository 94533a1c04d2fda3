-- The rights: the owner of the tables cannot log in, and the writer can neither change nor remove a record.
CREATE ROLE main_owner NOLOGIN;
GRANT main_owner TO CURRENT_USER;
ALTER SCHEMA main OWNER TO main_owner;
ALTER TABLE main.journal OWNER TO main_owner;
ALTER TABLE main.records OWNER TO main_owner;
ALTER TABLE main.entries OWNER TO main_owner;
ALTER TABLE main.keys OWNER TO main_owner;
ALTER TABLE main.totals OWNER TO main_owner;
ALTER TABLE main.plans OWNER TO main_owner;
ALTER TABLE main.senders OWNER TO main_owner;
ALTER TABLE main.locks OWNER TO main_owner;
ALTER FUNCTION main.refuse_change() OWNER TO main_owner;
ALTER FUNCTION main.require_lease(text) OWNER TO main_owner;
GRANT USAGE ON SCHEMA main TO main_writer;
GRANT SELECT ON main.journal TO main_writer;
GRANT SELECT, INSERT ON main.records TO main_writer;
GRANT SELECT, INSERT, UPDATE, DELETE ON main.entries, main.keys, main.totals, main.plans, main.senders, main.locks
TO main_writer;
REVOKE main_owner FROM CURRENT_USER;
