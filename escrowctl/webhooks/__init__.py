"""Events of the service: their signatures, receiving, storing and forwarding them."""
