"""`escrowctl webhook`."""
