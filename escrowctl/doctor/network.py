"""The connection to the service: proxy, name, TCP, TLS."""

import ipaddress
import shlex
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from urllib.parse import urlsplit

from escrowctl.client.http import Exchange, Fault, Tls
from escrowctl.client.transport import resolve_name
from escrowctl.config.origin import Origin, find_proxy, find_proxy_name, hide_userinfo
from escrowctl.config.service import Service
from escrowctl.doctor.finding import Finding, Verdict, fail, skip
from escrowctl.errors import EscrowctlError, Hint

_DNS_SECONDS = 10.0
_FEW_DAYS = 14
_MOST_ADDRESSES = 3


def check_proxy(origin: Origin, environ: Mapping[str, str]) -> Finding:
    """Check which proxy requests to the service go through."""
    try:
        proxy = find_proxy(origin, environ)
    except EscrowctlError as error:
        return fail("proxy", error)
    name = find_proxy_name(environ)
    if proxy is not None:
        return Finding("proxy", Verdict.OK, f"{hide_userinfo(proxy)} (from {name})")
    why = f"; {name} does not apply: {origin.host} is loopback or in NO_PROXY" if name else ""
    return Finding("proxy", Verdict.OK, f"none{why}")


def check_name(origin: Origin, environ: Mapping[str, str], *, monotonic: Callable[[], float]) -> Finding:
    """Check that the host to connect to has an address: the proxy's host if there is one, else the service's."""
    try:
        proxy = find_proxy(origin, environ)
    except EscrowctlError:
        return Finding("dns", Verdict.SKIPPED, "the proxy cannot be used")
    host = (urlsplit(proxy).hostname if proxy else None) or origin.host
    if _is_address(host):
        return Finding("dns", Verdict.SKIPPED, f"{host} is an address")
    try:
        addresses = resolve_name(host, origin.port, seconds=_DNS_SECONDS, monotonic=monotonic)
    except OSError as error:
        hint = Hint(f"getent hosts {shlex.quote(host)}", "check the name, and the DNS servers of this machine")
        return Finding("dns", Verdict.FAILED, f"{host}: {error.strerror or error}", (hint,))
    more = ", ..." if len(addresses) > _MOST_ADDRESSES else ""
    whose = " (the proxy; it resolves the name of the service)" if proxy else ""
    return Finding("dns", Verdict.OK, f"{host}: {', '.join(addresses[:_MOST_ADDRESSES])}{more}{whose}")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def check_way(
    exchange: Exchange, service: Service, *, proxy_name: str | None, hints: tuple[Hint, ...], now: datetime
) -> Iterator[Finding]:
    """Check how far a request got.

    `proxy_name` is the variable that names the proxy, None without one. `hints` are for a failed request.
    """
    peer = exchange.peer
    if peer is None:
        at_proxy = f"no connection to the proxy from {proxy_name} ({exchange.detail})"
        why = at_proxy if proxy_name else f"{service.origin}: {exchange.why}"
        yield Finding("tcp", Verdict.FAILED, why, hints)
        yield from skip("no connection", "tls")
        return
    connected = f"connected to {peer.address}{f' (the proxy from {proxy_name})' if proxy_name else ''}"
    if exchange.fault is Fault.PROXY:
        why = exchange.detail.removeprefix(f"{exchange.proxy}: ")
        yield Finding("tcp", Verdict.FAILED, f"{connected}, which refused: {why}", hints)
        yield from skip("no connection to the service", "tls")
        return
    yield Finding("tcp", Verdict.OK, connected)
    if service.origin.scheme == "http":
        yield from skip("plain http, to loopback only", "tls")
    elif peer.tls is None:
        yield Finding("tls", Verdict.FAILED, exchange.why, hints)
    else:
        yield _check_certificate(peer.tls, now)


def _check_certificate(tls: Tls, now: datetime) -> Finding:
    days = (tls.ends - now).days
    ends = f"{tls.ends:%Y-%m-%d}, in {days} days" if days >= 0 else f"{tls.ends:%Y-%m-%d}"
    verdict = Verdict.OK if days >= _FEW_DAYS else Verdict.WARNING
    return Finding("tls", verdict, f"{tls.version}, certificate by {tls.issuer}, valid until {ends}")
