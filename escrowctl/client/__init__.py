"""The layer between a command and the network. Nothing else sends requests."""
