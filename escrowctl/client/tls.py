"""Our own TLS context: the system's trust or a CA bundle, TLS 1.2 or newer, names checked."""

import ssl
from pathlib import Path

from escrowctl.errors import bad_config


def make_context(ca_bundle: Path | None) -> ssl.SSLContext:
    """Return a verifying context; raises EscrowctlError (exit 2) for a bundle that is not PEM.

    A bundle replaces the system's trust store. SSLKEYLOGFILE is not honoured: it would write what
    decrypts the key's transport into a file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if ca_bundle:
            context.load_verify_locations(cafile=ca_bundle)
        else:
            context.load_default_certs()
    except (ssl.SSLError, OSError) as error:
        raise bad_config(f"ESCROWCTL_CA_BUNDLE: {ca_bundle} holds no usable certificates: {error}.") from error
    return context


def make_empty_context() -> ssl.SSLContext:
    """Return a context for plain http to loopback, which never shakes hands: no store is read."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
