"""Checks of the connection to the service: proxy, host name, TCP and TLS."""

import ipaddress
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from urllib.parse import urlsplit

from escrowctl.client.http import Exchange, Fault
from escrowctl.client.transport import resolve_name
from escrowctl.config.origin import Origin, find_proxy, find_proxy_variable, hide_userinfo
from escrowctl.config.service import Service
from escrowctl.doctor.finding import Finding, Verdict
from escrowctl.errors import Hint

_DNS_SECONDS = 10.0
_MIN_CERTIFICATE_DAYS = 14
_MAX_SHOWN_ADDRESSES = 3


def check_proxy(origin: Origin, environ: Mapping[str, str]) -> Finding:
    """Report the proxy for requests to `origin`. Raises `ErrorCode.BAD_CONFIG` if the proxy's URL is invalid."""
    proxy, variable = find_proxy(origin, environ), find_proxy_variable(environ)
    if proxy is not None:
        return Finding("proxy", Verdict.OK, f"{hide_userinfo(proxy)} (from {variable})")
    why = f"; {variable} does not apply: {origin.host} is loopback or in NO_PROXY" if variable else ""
    return Finding("proxy", Verdict.OK, f"none{why}")


def check_host_name(service: Service, *, monotonic: Callable[[], float]) -> Finding:
    """Check that the proxy's host name, or without a proxy the service's, resolves to IP addresses."""
    proxy = service.network.proxy
    host = (urlsplit(proxy).hostname if proxy else None) or service.origin.host
    with suppress(ValueError):
        return Finding("dns", Verdict.SKIPPED, f"{ipaddress.ip_address(host)} is an IP address")
    try:
        addresses = resolve_name(host, service.origin.port, seconds=_DNS_SECONDS, monotonic=monotonic)
    except OSError as error:
        hint = Hint(f"getent hosts {shlex.quote(host)}", "check the name, and the DNS servers of this machine")
        return Finding("dns", Verdict.FAILED, f"{host}: {error.strerror or error}", (hint,))
    more = ", ..." if len(addresses) > _MAX_SHOWN_ADDRESSES else ""
    proxy_note = " (the proxy; it resolves the name of the service)" if proxy else ""
    return Finding("dns", Verdict.OK, f"{host}: {', '.join(addresses[:_MAX_SHOWN_ADDRESSES])}{more}{proxy_note}")


def check_connection(
    exchange: Exchange, service: Service, *, hints: tuple[Hint, ...], now: datetime
) -> Iterator[Finding]:
    """Yield findings on TCP, then on TLS, of one request. The first failure is the last finding, with `hints`."""
    peer, proxy = exchange.peer, exchange.proxy
    if peer is None:
        target = f"the proxy {proxy}" if proxy else str(service.origin)
        yield Finding("tcp", Verdict.FAILED, f"{target}: {exchange.why}", hints)
        return
    connected = f"connected to {peer.address}{f' (the proxy {proxy})' if proxy else ''}"
    if exchange.fault is Fault.PROXY:
        yield Finding("tcp", Verdict.FAILED, f"{connected}: {exchange.why}", hints)
        return
    yield Finding("tcp", Verdict.OK, connected)
    if service.origin.scheme == "http":
        yield Finding("tls", Verdict.SKIPPED, "plain http, which is allowed to loopback only")
    elif peer.tls is None:
        yield Finding("tls", Verdict.FAILED, exchange.why, hints)
    else:
        days = (peer.tls.expires - now).days
        verdict = Verdict.OK if days >= _MIN_CERTIFICATE_DAYS else Verdict.WARNING
        until = f"valid until {peer.tls.expires:%Y-%m-%d} ({days} days)"
        yield Finding("tls", verdict, f"{peer.tls.version}, certificate by {peer.tls.issuer}, {until}")
