"""`escrowctl journal`: show, settle and transfer the records of writes."""
