"""The commands, one file per noun: each asks, calls and shows."""
