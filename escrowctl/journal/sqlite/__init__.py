"""The journal in one SQLite file, with the locks next to it."""
