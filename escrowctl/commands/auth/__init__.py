"""`escrowctl auth`: the accounts and their API keys."""
