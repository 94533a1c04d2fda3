"""Formats values as text, and writes the text."""
