"""The account at the service that sends a write: an earlier write counts as done only for the account that sent it."""

import hashlib
import os
from functools import cache, cached_property

from escrowctl.contract.redaction import Secret

_SALT_BYTES = 8
_make_salt = cache(lambda: os.urandom(_SALT_BYTES).hex())  # one for all entries of a process: their key is the same
_DIGEST_CHARS = 8
"""32 bits are enough to tell a user's keys apart, but too few to confirm a guess of a short key."""


class Account:
    """An account at a service, as far as it is known here.

    `name` is the setting `account` of the profile. `fingerprint` is a salted hash of the API key: `SALT:DIGEST`,
    both hexadecimal. `key` is the API key itself. Only the current command's account has it; it is never stored.
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
    def as_stored(self) -> "Account":
        """This account as an entry stores it: with a fingerprint of the key, but without the key."""
        return Account(self.name, _fingerprint(_make_salt(), self.key) if self.key else self.fingerprint)

    def is_same(self, earlier: "Account") -> bool:
        """Whether `earlier`, the account of an earlier write, is certainly this account: same key or same name."""
        if self.key is not None and earlier.fingerprint is not None:
            salt = earlier.fingerprint.partition(":")[0]
            if _fingerprint(salt, self.key) == earlier.fingerprint:
                return True
        return self.name is not None and self.name == earlier.name

    def is_other(self, earlier: "Account") -> bool:
        """Whether `earlier` is certainly a different account: the names are known and differ, and no key matches."""
        return None not in (self.name, earlier.name) and not self.is_same(earlier)


NO_ACCOUNT = Account()
"""An account that is not known, as for entries of earlier formats."""


def _fingerprint(salt: str, key: Secret) -> str:
    digest = hashlib.sha256(f"{salt}:{key.reveal()}".encode()).hexdigest()
    return f"{salt}:{digest[:_DIGEST_CHARS]}"
