"""Completion scripts, generated from the command tree. At TAB, they start no program."""
