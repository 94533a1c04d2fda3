"""A file of writes: checked as a whole, stored as a plan, sent row by row, each row a journal entry like any other."""
