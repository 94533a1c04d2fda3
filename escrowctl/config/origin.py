"""Base URLs: which are accepted, their normal form, and how to reach them (proxy and certificates)."""

import ipaddress
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from escrowctl.contract.redaction import STARS, star_possible_key
from escrowctl.errors import bad_config

PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
"""The variables for a proxy. The first that is set counts; requests to loopback hosts never use a proxy."""

_HOST_LABEL = r"(?!xn--(?:\.|$))[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST_NAME = re.compile(rf"(?:{_HOST_LABEL}\.)*{_HOST_LABEL}", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """A base URL in normal form: its origin (scheme, host and port: RFC 6454 section 4) and its path."""

    scheme: str
    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        """Return `scheme://host[:port]`. The default port of the scheme is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{'' if self.port == _DEFAULT_PORTS[self.scheme] else f':{self.port}'}"

    @property
    def base_url(self) -> str:
        """The base URL in normal form, without a slash at the end."""
        return f"{self}{self.path}"

    @property
    def is_loopback(self) -> bool:
        """Whether the host is `localhost` or a loopback address. Any other name counts as remote."""
        return _is_loopback(self.host)


@lru_cache(maxsize=16)
def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Network(NamedTuple):
    """A CA bundle (None: the system's certificates) and the URL of a proxy (None: no proxy) to reach an origin."""

    ca_bundle: Path | None = None
    proxy: str | None = None


def parse_base_url(text: str, *, source: str) -> Origin:
    """Return a base URL in normal form. Plain http is accepted only for loopback.

    Raises EscrowctlError `ErrorCode.BAD_CONFIG`; its message names `source`. No message quotes a user name,
    password, query or fragment: these may be secrets.
    """
    if " " in text or not text.isascii() or not text.isprintable():
        raise bad_config(f"{source} has spaces, control or non-ASCII characters: remove them.")
    head = re.split("[?#]", text, maxsplit=1)[0]
    quoted = STARS if "@" in head else star_possible_key(head)
    not_a_base_url = f'{source} "{quoted}" is not a base URL: write one such as https://escrow.example.com.'
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
        # A name (RFC 1123 section 2.1), or else an address.
        if "[" in parts.netloc or not _HOST_NAME.fullmatch(host):
            host = str(ipaddress.ip_address(host))
    except ValueError:
        raise bad_config(not_a_base_url) from None
    if parts.scheme not in _DEFAULT_PORTS or port == 0:
        raise bad_config(not_a_base_url)
    if "@" in parts.netloc:
        raise bad_config(f"{source} contains a user name or password: remove them. The API key is enough.")
    if "?" in text or "#" in text:
        corrected = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
        raise bad_config(f"{source} has a query or a fragment: write {corrected}.")
    segments = parts.path.strip("/").split("/") if parts.path.strip("/") else []
    if any(segment in ("", ".", "..") or "%" in segment or "\\" in segment for segment in segments):
        raise bad_config(f'{source} "{text}" contains an empty part, ".", "..", "%" or "\\" in its path: remove it.')
    port = port or _DEFAULT_PORTS[parts.scheme]
    origin = Origin(parts.scheme, host, port, "".join(f"/{segment}" for segment in segments))
    if origin.scheme == "http" and not origin.is_loopback:
        raise bad_config(
            f'{source} "{text}" is plain http to a remote host, so the API key would not be encrypted: write https://{parts.netloc}.'
        )
    return origin


def ends_with_prefix(origin: Origin, api_prefix: str) -> bool:
    """Whether the base URL's path already ends in the API prefix. Case does not matter."""
    return bool(api_prefix) and origin.path.casefold().endswith(api_prefix.casefold())


def refuse_double_prefix(origin: Origin, api_prefix: str, *, source: str) -> Origin:
    """Return `origin`. Raises `ErrorCode.BAD_CONFIG` if the base URL already ends in the API prefix."""
    if ends_with_prefix(origin, api_prefix):
        corrected = f"{origin}{origin.path[: -len(api_prefix)]}"
        raise bad_config(f'{source} "{origin.base_url}" already ends in {api_prefix}: write {corrected}.')
    return origin


def find_network(origin: Origin, environ: Mapping[str, str]) -> Network:
    """Return the CA bundle and the proxy for an origin. No proxy for loopback: the key would be unencrypted.

    Raises EscrowctlError `ErrorCode.BAD_CONFIG` for a CA bundle that does not exist, or an unusable proxy URL.
    """
    bundle = Path(named) if (named := environ.get("ESCROWCTL_CA_BUNDLE")) else None
    if bundle is not None and not bundle.is_file():
        raise bad_config(f"ESCROWCTL_CA_BUNDLE: there is no file {bundle}.")
    return Network(bundle, find_proxy(origin, environ))


def find_proxy_variable(environ: Mapping[str, str]) -> str | None:
    """Return the first of PROXY_VARIABLES that is set; None if none is set."""
    return next((name for name in PROXY_VARIABLES if environ.get(name)), None)


def hide_userinfo(proxy: str) -> str:
    """Return the URL of a proxy, with stars in place of a user name and password."""
    parts = urlsplit(proxy)
    userinfo = f"{STARS}@" if "@" in parts.netloc else ""
    return f"{parts.scheme}://{userinfo}{parts.netloc.rpartition('@')[2]}"


def find_proxy(origin: Origin, environ: Mapping[str, str]) -> str | None:
    """Return the proxy's URL for an origin; None for no proxy. Raises `BAD_CONFIG` for an unusable URL."""
    name = find_proxy_variable(environ)
    if name is None or origin.is_loopback:
        return None
    # Slow to import, and only needed behind a proxy. It reads only the mapping, not the environment.
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined] # noqa: PLC0415 - not in typeshed

    excluded = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    if proxy_bypass_environment(f"{origin.host}:{origin.port}", {"no": excluded}):
        return None
    proxy = environ[name]
    with suppress(ValueError):
        parts = urlsplit(proxy)
        is_plain = proxy.isascii() and proxy.isprintable() and " " not in proxy
        is_host_only = parts.path in ("", "/") and not parts.query and not parts.fragment
        if is_plain and is_host_only and parts.scheme in _DEFAULT_PORTS and parts.hostname and parts.port != 0:
            return proxy
    # The value is not shown: it may contain a password.
    raise bad_config(f"{name} is not an http or https proxy URL such as http://proxy.example.com:3128.")
