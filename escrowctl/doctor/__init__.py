"""The checks of `escrowctl doctor`: each function checks one part of the set-up and returns its findings."""
