"""Harnesses that break the disk, the network, the service or the process, and check what must still hold."""
