"""The published interface as data: operations, money, and a strict reader of replies."""
