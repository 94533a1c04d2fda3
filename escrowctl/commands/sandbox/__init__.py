"""`escrowctl sandbox`."""
