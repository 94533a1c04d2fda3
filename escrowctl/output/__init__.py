"""From values to text, and the one place that writes it."""
