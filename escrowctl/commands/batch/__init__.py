"""`escrowctl batch`: files of creates and releases."""
