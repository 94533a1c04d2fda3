"""The sandbox judged on its own, through its WSGI door."""
