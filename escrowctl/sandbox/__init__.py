"""The embedded escrow service: a real implementation of the interface, to test clients against."""
