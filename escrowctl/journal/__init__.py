"""The journal: it stores each write durably before the write is sent, and its outcome afterwards."""
