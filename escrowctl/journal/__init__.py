"""The journal: every write's intent, durable before its bytes, and its outcome after."""
