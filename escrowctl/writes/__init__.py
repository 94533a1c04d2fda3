"""Send writes: `kinds` describes each kind of write, and `pipeline` carries out the writes."""
