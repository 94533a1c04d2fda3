"""The commands of escrowctl, and the modules that they share."""
