"""Checking a key: GET /webhooks, the one published read that needs no id."""

from typing import TYPE_CHECKING

from escrowctl.config.origin import Origin, ends_in, find_network
from escrowctl.config.secrets import Secret
from escrowctl.config.service import Service
from escrowctl.config.variables import KEYS
from escrowctl.contract.operations import DEFAULT_API_PREFIX, LIST_WEBHOOKS
from escrowctl.errors import NOTHING_STORED, ErrorCode, EscrowctlError, Hints, bad_value
from escrowctl.session import Session

if TYPE_CHECKING:
    from escrowctl.config.profiles import Profile


def refuse_sandbox(session: Session) -> None:
    """Raise EscrowctlError `ErrorCode.BAD_VALUE` with `--sandbox`: it has no keys to manage."""
    if session.options.sandbox:
        raise bad_value("the sandbox needs no account and no key: leave --sandbox out.")


def check_key(
    session: Session,
    key: Secret,
    *,
    name: str,
    origin: Origin,
    api_prefix: str,
    mode: str,
    source: str,
    profile: "Profile | None" = None,
) -> None:
    """Ask the service whether it accepts the key; `source` says where its URL is from.

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
        live=mode == "live",
        api_prefix=api_prefix,
        read_timeout=read_timeout,
        write_timeout=write_timeout,
        network=find_network(origin, session.surroundings.environ),
    )
    with session.open_reader(service) as reader:
        reader.probe(LIST_WEBHOOKS)


def explain_refusal(error: EscrowctlError, *, origin: Origin, api_prefix: str, again: str) -> EscrowctlError:
    """Return why a key was not stored, and how to go on; `again` is the login as a command line."""
    reason = error.message.removesuffix(".")
    unchecked = "to store it unchecked, add --no-check"
    code, message = error.code, reason
    hint: Hints = (*error.hints, unchecked)
    if error.code is ErrorCode.NOT_AUTHENTICATED:
        message, hint = f"{origin} does not accept this key ({reason})", ()
    elif error.code is ErrorCode.FORBIDDEN:
        code = ErrorCode.NOT_AUTHENTICATED
        message = f"{origin} does not accept this key for GET {LIST_WEBHOOKS.path} ({reason})"
        hint = ("if the key is right, but may not list webhooks: add --no-check to store it unchecked",)
    elif error.code is ErrorCode.NOT_FOUND:
        other = "/v1" if api_prefix == DEFAULT_API_PREFIX else DEFAULT_API_PREFIX
        if ends_in(origin, other):
            # The base URL already contains it.
            other = "''"
        message = f"{origin} has no GET {api_prefix}{LIST_WEBHOOKS.path} ({reason}): the API may have another prefix"
        hint = (f"with another prefix: {again} --api-prefix {other}", unchecked)
    return EscrowctlError(
        code, f"{message}.", hint=hint, outcome=error.outcome, effect=NOTHING_STORED, facts=error.facts
    )


def not_stored(error: EscrowctlError) -> EscrowctlError:
    """Return why a key was not stored, as an error that is also true after requests were sent."""
    return EscrowctlError(error.code, error.message, hint=error.hints, effect=NOTHING_STORED, facts=error.facts)


def note_variables(session: Session) -> None:
    """Report which variables outrank the default profile, or its key."""
    names = ("ESCROWCTL_BASE_URL", "ESCROWCTL_PROFILE", *KEYS)
    found = [name for name in names if session.surroundings.environ.get(name)]
    if found:
        session.console.note("outranked", f"the environment overrides the default profile: {', '.join(found)}")
