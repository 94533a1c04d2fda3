"""Proxy and CA settings from the environment, for real hosts only."""

import re
from collections.abc import Mapping
from ipaddress import IPv6Address
from pathlib import Path
from urllib.parse import urlsplit

from escrowctl.config.origin import Origin
from escrowctl.config.service import Network
from escrowctl.errors import bad_config

_PROXY_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?\.?", re.ASCII)
_PROXY_NAMES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def find_network(origin: Origin, environ: Mapping[str, str]) -> Network:
    """Return how to reach an origin: never through a proxy to loopback (the key would go there in clear).

    Raises EscrowctlError (exit 2) for a CA bundle that is not there and a proxy that cannot be used.
    """
    return Network(ca_bundle=_ca_bundle(environ), proxy=_proxy(origin, environ))


def find_proxy_name(environ: Mapping[str, str]) -> str | None:
    """Return the variable that names a proxy, if one does."""
    return next((name for name in _PROXY_NAMES if environ.get(name)), None)


def _ca_bundle(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("ESCROWCTL_CA_BUNDLE")
    if not named:
        return None
    path = Path(named)
    if not path.is_file():
        raise bad_config(f"ESCROWCTL_CA_BUNDLE: there is no file {path}.")
    return path


def _proxy(origin: Origin, environ: Mapping[str, str]) -> str | None:
    name = find_proxy_name(environ)
    if name is None or origin.is_loopback or _excepted(origin, environ):
        return None
    proxy = environ[name]
    if not _is_usable(proxy):
        # Its value is not told: a password may stand in it.
        raise bad_config(f"{name} is not an http or https proxy URL such as http://proxy.example.com:3128.")
    return proxy


def _is_usable(proxy: str) -> bool:
    if not proxy.isascii() or not proxy.isprintable() or " " in proxy:
        return False
    try:
        parts = urlsplit(proxy)
        port = parts.port
        host = parts.hostname or ""
        return (
            parts.scheme in ("http", "https")
            and port != 0
            and (_PROXY_HOST.fullmatch(host) is not None or (":" in host and bool(IPv6Address(host))))
            and parts.path in ("", "/")
            and not parts.query
            and not parts.fragment
        )
    except ValueError:
        return False


def _excepted(origin: Origin, environ: Mapping[str, str]) -> bool:
    # Slow to import and seldom needed. It reads nothing but the mapping it is given.
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined] # noqa: PLC0415 - not in typeshed

    without = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return bool(proxy_bypass_environment(f"{origin.host}:{origin.port}", {"no": without}))
