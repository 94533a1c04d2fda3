"""The account of a write: a claim of success is valid only for that account."""

import hashlib
import os
from functools import cached_property

from escrowctl.contract.redaction import Secret

_SALT_BYTES = 8
_DIGEST_CHARS = 8
"""32 bits tell a user's keys apart, and are too few to test guesses of a short key against."""


class Account:
    """An account at a service, as far as the journal knows it.

    `name` is the profile's `account`, `fingerprint` is that of the API key: `SALT:DIGEST`, both
    hexadecimal. `key` is set only for the account of this run; it is never stored, and not compared.
    """

    def __init__(self, name: str | None = None, fingerprint: str | None = None, *, key: Secret | None = None) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.key = key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Account):
            return NotImplemented
        return (self.name, self.fingerprint) == (other.name, other.fingerprint)

    def __hash__(self) -> int:
        return hash((self.name, self.fingerprint))

    @cached_property
    def of_entry(self) -> "Account":
        """The account of this run as an entry stores it: the key as a fingerprint with a new salt."""
        salt = os.urandom(_SALT_BYTES).hex()
        return Account(self.name, _fingerprint(salt, self.key) if self.key else self.fingerprint)

    def is_same(self, earlier: "Account") -> bool:
        """Whether an entry was certainly made under this account: by the same key, or under the same name."""
        if self.key is not None and earlier.fingerprint is not None:
            salt = earlier.fingerprint.partition(":")[0]
            if _fingerprint(salt, self.key) == earlier.fingerprint:
                return True
        return self.name is not None and self.name == earlier.name

    def is_other(self, earlier: "Account") -> bool:
        """Whether an entry was certainly made under another account: both have a name, and the names differ.

        One API key belongs to one account, even under two names.
        """
        return None not in (self.name, earlier.name) and not self.is_same(earlier)


NO_ACCOUNT = Account()
"""The account of entries from earlier formats: not known."""


def _fingerprint(salt: str, key: Secret) -> str:
    digest = hashlib.sha256(f"{salt}:{key.reveal()}".encode()).hexdigest()
    return f"{salt}:{digest[:_DIGEST_CHARS]}"
