"""What `escrowctl doctor` checks: each function looks at one part of the set-up and returns what it found."""
