"""A file of writes: checked completely, stored as a plan, and sent row by row. Each row becomes a journal entry."""
