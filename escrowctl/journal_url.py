"""Where a shared journal is: a PostgreSQL URL, and the name of the journal in that database."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

SCHEMES = ("postgresql", "postgres")
_DEFAULT_NAME = "escrowctl"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_SECRETS = ("password", "sslpassword", "passfile")


class JournalUrl(NamedTuple):
    """The URL of a journal. `url` is for libpq; `name` is the journal's name, which is also its schema's."""

    url: str
    name: str

    def with_name(self, name: str) -> JournalUrl:
        """Return the URL of another journal in the same database. Raises ValueError as `parse_journal_url` does."""
        if not _NAME.fullmatch(name):
            raise ValueError(f'names the journal "{name}": a name has up to 40 small letters, digits and _')
        return self._replace(name=name)

    def __str__(self) -> str:
        """Return the name and the URL, for messages. It has no password."""
        place = urlsplit(self.url)
        host = dict(parse_qsl(place.query)).get("host") or place.netloc.rpartition("@")[2]
        return f"{self.name} in {host}{place.path}"


def parse_journal_url(text: str) -> JournalUrl:
    """Return the journal that a URL names, such as `postgresql://db.example.com/payments?journal=payouts`.

    Raises ValueError, whose text continues a sentence about the URL: it has a password, which libpq's own means
    should have (PGPASSFILE, PGSERVICE, PGPASSWORD), another scheme, or a wrong name of a journal.
    """
    url, name = _split_name(text)
    return JournalUrl(url, "").with_name(name)


def is_journal_url(text: str) -> bool:
    """Whether a text is the URL of a journal, perhaps with a wrong name, and has no password."""
    try:
        return bool(_split_name(text))
    except ValueError:
        return False


def _split_name(text: str) -> tuple[str, str]:
    """Return the URL for libpq, and the name of the journal."""
    url = urlsplit(text)
    if url.scheme not in SCHEMES:
        raise ValueError("is not a URL of PostgreSQL, such as postgresql://db.example.com/payments")
    # In a form, "+" is a space; libpq takes it as it is.
    options = dict(parse_qsl(url.query.replace("+", "%2B"), keep_blank_values=True))
    if url.password is not None or any(name in options for name in _SECRETS):
        raise ValueError("has a password: put it in ~/.pgpass or PGPASSWORD, and remove it from the URL")
    name = options.pop("journal", _DEFAULT_NAME)
    places = url.netloc.rpartition("@")[2].split(",")
    hosts = options["host"].split(",") if "host" in options else [urlsplit(f"//{one}").hostname or "" for one in places]
    # Without a host, libpq takes PGHOST, PGSERVICE or a socket, for which it ignores sslmode.
    if "hostaddr" in options or not all(host.startswith("/") or _is_loopback(host) for host in hosts):
        options.setdefault("sslmode", "verify-full")
    if len(hosts) > 1:
        # A standby may lack the last records, and would look like an older copy.
        options.setdefault("target_session_attrs", "read-write")
    base = text.partition("?")[0]
    return f"{base}?{urlencode(options, quote_via=quote)}" if options else base, name


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
