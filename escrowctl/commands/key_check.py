"""Trying a key: GET /webhooks, the one published read that needs no id."""

from typing import TYPE_CHECKING

from escrowctl.config.origin import Origin, ends_in, find_network
from escrowctl.config.secrets import Secret
from escrowctl.config.service import Service
from escrowctl.contract.operations import DEFAULT_API_PREFIX, LIST_WEBHOOKS
from escrowctl.errors import NOTHING_STORED, ErrorCode, EscrowctlError, Hints
from escrowctl.session import Session

if TYPE_CHECKING:
    from escrowctl.config.profiles import Profile


def try_key(
    session: Session,
    key: Secret,
    *,
    name: str,
    origin: Origin,
    api_prefix: str,
    live: bool,
    source: str,
    profile: "Profile | None" = None,
) -> None:
    """Ask the service whether it takes the key; `source` says where its URL is from.

    Raises EscrowctlError as `Reader.read` does where it does not.
    """
    read_timeout, write_timeout = session.resolver.timeouts(profile)
    service = Service(
        name=name,
        origin=origin,
        identity=str(origin),
        key=key,
        url_source=source,
        key_source=source,
        live=live,
        api_prefix=api_prefix,
        read_timeout=read_timeout,
        write_timeout=write_timeout,
        network=find_network(origin, session.surroundings.environ),
    )
    client = session.open_client(service)
    try:
        client.check_key()
    finally:
        client.close()


def not_stored(error: EscrowctlError, *, origin: Origin, api_prefix: str, again: str) -> EscrowctlError:
    """Return why a key was not stored, and how to go on; `again` is the login as it would be typed again."""
    said = error.message.removesuffix(".")
    unchecked = "to store it unchecked: add --no-check"
    code, message = error.code, said
    hint: Hints = (*error.hints, unchecked)
    if error.code is ErrorCode.NOT_AUTHENTICATED:
        message, hint = f"{origin} does not take this key ({said})", ()
    elif error.code is ErrorCode.FORBIDDEN:
        code = ErrorCode.NOT_AUTHENTICATED
        message = f"{origin} does not take this key for GET {LIST_WEBHOOKS.path} ({said})"
        hint = (f"if it is right and may not do just this: {unchecked}",)
    elif error.code is ErrorCode.NOT_FOUND:
        other = "/v1" if api_prefix == DEFAULT_API_PREFIX else DEFAULT_API_PREFIX
        if ends_in(origin, other):
            # It stands in the base URL already.
            other = "''"
        message = (
            f"{origin} has no GET {api_prefix}{LIST_WEBHOOKS.path} ({said}): the API may stand under another prefix"
        )
        hint = (f"with another prefix: {again} --api-prefix {other}", unchecked)
    return EscrowctlError(
        code, f"{message}.", hint=hint, outcome=error.outcome, effect=NOTHING_STORED, facts=error.facts
    )


def say_not_stored(error: EscrowctlError) -> EscrowctlError:
    """Return what kept a key from being stored, in words that hold after the service was asked."""
    return EscrowctlError(error.code, error.message, hint=error.hints, effect=NOTHING_STORED, facts=error.facts)
