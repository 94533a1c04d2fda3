"""The journal's tables in SQL that every engine understands: read them, append to them, and compare them."""
