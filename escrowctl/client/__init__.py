"""The thin layer between a command and the wire, and the only one that sends anything."""
