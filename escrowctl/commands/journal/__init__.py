"""`escrowctl journal`."""
