"""The tables of the sandbox's store, version by version."""

APPLICATION_ID = 0x65736372
"""SQLite's header field for the owner of a file ("escr" in ASCII)."""

VERSION_1: tuple[str, ...] = (
    """
    CREATE TABLE sandbox (
      only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
      identity TEXT NOT NULL,
      api_key TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE users (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      email TEXT NOT NULL,
      status TEXT NOT NULL,
      created_at TEXT NOT NULL
    ) STRICT
    """,
    """
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
    ) STRICT
    """,
    """
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
    """,
    # Money leaves a hold once, by any move, including later ones.
    """
    CREATE UNIQUE INDEX a_hold_is_left_once ON ledger_entries (transaction_id)
      WHERE account = 'hold' AND units < 0
    """,
    """
    CREATE TRIGGER ledger_entries_are_never_updated BEFORE UPDATE ON ledger_entries
      BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    """
    CREATE TRIGGER ledger_entries_are_never_deleted BEFORE DELETE ON ledger_entries
      BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
)

VERSION_2: tuple[str, ...] = (
    """
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
    ) STRICT
    """,
)

STEPS: tuple[tuple[str, ...], ...] = (VERSION_1, VERSION_2)
"""`STEPS[n]` brings a store from version n (`PRAGMA user_version`) to n + 1. A step is never edited once released."""
