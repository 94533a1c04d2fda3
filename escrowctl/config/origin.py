"""Base URLs: which are taken, and the normal form by which two of them are the same service."""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from escrowctl.contract.key_search import STARS, shown
from escrowctl.errors import EscrowctlError, bad_config

_LABEL = r"(?!xn--(?:\.|$))[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}", re.ASCII)
_MAX_HOST_CHARS = 253
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port (RFC 6454 section 4) of a base URL, normalised, and its path."""

    scheme: str
    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        """Return `scheme://host[:port]`, the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def base_url(self) -> str:
        """The origin with the base URL's path, without a slash at its end."""
        return f"{self}{self.path}"

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine, as `localhost` or a literal address.

        No other name is: where it leads is for whoever answers the look-up.
        """
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_base_url(text: str, *, source: str) -> Origin:
    """Return the origin of a base URL; plain http only to loopback.

    Raises EscrowctlError (exit 2) naming `source` and what to write instead. Userinfo, query and fragment
    are never quoted: they may be secrets.
    """
    parts = _split(text, source)
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise bad_config(f"{source} has a user or password in it: leave them out, the key goes elsewhere.")
    if "?" in text:
        raise bad_config(f"{source} has a query: write {_bare(parts)}.")
    if "#" in text:
        raise bad_config(f"{source} has a fragment: write {_bare(parts)}.")
    host = _host(parts, text, source)
    port = _port(parts, text, source)
    origin = Origin(parts.scheme, host, port, _path(parts.path, text, source))
    if origin.scheme == "http" and not origin.is_loopback:
        raise bad_config(
            f'{source} "{text}" is plain http to a real host: the key would go in clear; write https://{parts.netloc}.'
        )
    return origin


def ends_in(origin: Origin, api_prefix: str) -> bool:
    """Whether the base URL's path ends in these segments already, in whatever case."""
    return bool(api_prefix) and origin.path.casefold().endswith(api_prefix.casefold())


def refuse_prefix(origin: Origin, api_prefix: str, *, source: str) -> Origin:
    """Return the origin; raises EscrowctlError (exit 2) where the prefix would stand in the URL twice."""
    if ends_in(origin, api_prefix):
        bare = f"{origin}{origin.path[: -len(api_prefix)]}"
        raise bad_config(f'{source} "{origin.base_url}" already ends in {api_prefix}: leave it out, write {bare}.')
    return origin


def _split(text: str, source: str) -> SplitResult:
    if " " in text or not text.isascii() or not text.isprintable():
        raise bad_config(f"{source} has spaces, control or non-ASCII characters in it: write the plain URL.")
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise bad_config(f'{source} "{_quotable(text)}" is not a URL.') from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise _not_a_base_url(text, source)
    return parts


def _not_a_base_url(text: str, source: str) -> EscrowctlError:
    return bad_config(f'{source} "{_quotable(text)}" is not a base URL: write one such as https://escrow.example.com.')


def _quotable(text: str) -> str:
    """Return what is before a query and a fragment; stars where that could be a key, or has a password."""
    head = text.partition("?")[0].partition("#")[0]
    return STARS if "@" in head else shown(head)


def _host(parts: SplitResult, text: str, source: str) -> str:
    """Return a host by name (RFC 1123 section 2.1: labels of letters, digits, hyphens) or literal address."""
    host = (parts.hostname or "").removesuffix(".")
    if "[" not in parts.netloc and _HOST_NAME.fullmatch(host) and len(host) <= _MAX_HOST_CHARS:
        return host
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        raise _not_a_base_url(text, source) from None


def _port(parts: SplitResult, text: str, source: str) -> int:
    try:
        port = parts.port if parts.port is not None else _DEFAULT_PORTS[parts.scheme]
    except ValueError:
        port = 0
    if not port:
        raise bad_config(f'{source} "{text}" has no usable port.')
    return port


def _path(path: str, text: str, source: str) -> str:
    segments = path.strip("/").split("/") if path.strip("/") else []
    if any(segment in ("", ".", "..") or "%" in segment or "\\" in segment for segment in segments):
        raise bad_config(f'{source} "{text}" has a path that could lead elsewhere: write plain segments.')
    return "".join(f"/{segment}" for segment in segments)


def _bare(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
