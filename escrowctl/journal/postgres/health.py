"""What `doctor` says about the database of a shared journal."""

from __future__ import annotations

from typing import Any, NamedTuple

from escrowctl.journal.postgres.connection import PostgresConnection
from escrowctl.runtime import Clock

_QUERY = """
SELECT current_setting('server_version') AS version, current_user AS writer,
  extract(epoch FROM clock_timestamp()) AS clock, current_setting('fsync') AS fsync,
  current_setting('synchronous_standby_names') AS awaited,
  (SELECT count(*) FROM pg_stat_replication) AS standbys,
  (SELECT extract(epoch FROM max(clock_timestamp() - xact_start)) FROM pg_stat_activity
    WHERE datname = current_database()) AS oldest,
  has_table_privilege('main.records', 'UPDATE') AS may_change,
  has_table_privilege('main.records', 'INSERT') AND has_table_privilege('main.senders', 'INSERT') AS may_add"""
_MAX_CLOCK_SECONDS = 60
_MAX_TRANSACTION_SECONDS = 600


class Health(NamedTuple):
    """A description of the server, its problems (texts that begin a sentence), and whether records can be added."""

    description: str
    concerns: tuple[str, ...]
    may_add: bool


def examine(database: PostgresConnection, now: Clock) -> Health:
    """Ask the database of a journal about itself. Raises psycopg's errors."""
    cursor = database.execute(_QUERY)
    found: dict[str, Any] = dict(zip([one.name for one in cursor.description or ()], cursor.fetchall()[0], strict=True))
    drift = abs(float(found["clock"]) - now().timestamp())
    oldest = float(found["oldest"] or 0)
    concerns = (
        ("fsync is off: a crash of the server can lose writes that were sent", found["fsync"] == "off"),
        (
            "there are standbys, but synchronous_standby_names is empty: a failover can lose writes that were sent",
            found["standbys"] and not found["awaited"],
        ),
        (f"{found['writer']} may not add records and leases, so every write is refused", not found["may_add"]),
        (f"{found['writer']} may change records: the database cannot protect them from it", found["may_change"]),
        (f"its clock differs from this machine's by {drift:.0f} s", drift > _MAX_CLOCK_SECONDS),
        (f"a transaction is open for {oldest:.0f} s, which slows it down", oldest > _MAX_TRANSACTION_SECONDS),
    )
    description = f"PostgreSQL {found['version'].split()[0]} as {found['writer']}"
    return Health(description, tuple(text for text, is_wrong in concerns if is_wrong), found["may_add"])
