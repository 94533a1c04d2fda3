"""Static completion scripts, generated from the command tree: no Python starts at TAB."""
