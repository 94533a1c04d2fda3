"""Our own TLS context: the system's trust or a CA bundle, TLS 1.2 or newer, names checked."""

import ssl
from pathlib import Path

from escrowctl.errors import bad_config


def make_context(ca_bundle: Path | None) -> ssl.SSLContext:
    """Return a verifying context; raises EscrowctlError (exit 2) for a bundle that is not PEM.

    A bundle replaces the system's trust store, and nothing else does: SSL_CERT_FILE and SSL_CERT_DIR,
    which OpenSSL's own defaults honour, would silently change whom the key is shown to. Nor is
    SSLKEYLOGFILE: it would write what decrypts the key's transport into a file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if ca_bundle:
            context.load_verify_locations(cafile=ca_bundle)
        else:
            _trust_system(context)
    except (ssl.SSLError, OSError) as error:
        where = f"ESCROWCTL_CA_BUNDLE: {ca_bundle}" if ca_bundle else "the system's trust store"
        raise bad_config(f"{where} holds no usable certificates: {error}.") from error
    return context


def _trust_system(context: ssl.SSLContext) -> None:
    """Load what OpenSSL was built to trust: its file, and its folder, which is looked into when needed."""
    built_in = ssl.get_default_verify_paths()
    file, folder = Path(built_in.openssl_cafile), Path(built_in.openssl_capath)
    if file.is_file():
        context.load_verify_locations(cafile=file)
    if folder.is_dir():
        context.load_verify_locations(capath=folder)


def make_empty_context() -> ssl.SSLContext:
    """Return a context for plain http to loopback, which never shakes hands: no store is read."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
