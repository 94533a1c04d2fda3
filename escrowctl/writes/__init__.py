"""The money path: one row of data per kind of write, and one pipeline for all of them."""
