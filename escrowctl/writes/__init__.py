"""Send writes: `kinds` has one row of data for each kind of write, and `pipeline` carries all of them out."""
