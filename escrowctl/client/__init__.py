"""The layer between a command and the service. Nothing else sends requests to it."""
