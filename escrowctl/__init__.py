"""escrowctl: the operator's command-line tool for an escrow service."""

__version__ = "0.1.0"
