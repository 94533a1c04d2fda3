"""The layer between a command and the service. Only this package sends requests to the service."""
