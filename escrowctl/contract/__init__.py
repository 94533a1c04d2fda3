"""The service's published interface: operations, money, records, and a strict reader of replies."""
