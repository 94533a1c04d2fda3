"""The embedded escrow service: the interface really implemented, and an honest judge of the client."""
