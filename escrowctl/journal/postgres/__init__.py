"""A journal in a PostgreSQL database, which several hosts share."""
