"""Command lines through `main`: what they exit with, print, send and record."""
