"""What only a process has: a terminal, signals, pipes, closed streams, files, and others like it."""
