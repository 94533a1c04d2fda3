"""`escrowctl tx`: create, release, read and update escrows."""
