"""Events of the service: check their signatures; receive, store and forward them."""
