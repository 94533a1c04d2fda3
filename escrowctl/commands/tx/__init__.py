"""`escrowctl tx`."""
