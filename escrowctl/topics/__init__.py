"""The topics of `escrowctl help`: texts, and tables made from the program's own data."""
