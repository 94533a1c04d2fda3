"""Harnesses that break things and count what is left."""
