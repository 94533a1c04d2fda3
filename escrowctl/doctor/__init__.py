"""The checks of `escrowctl doctor`: each checks one part of the set-up and returns its findings."""
