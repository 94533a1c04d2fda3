"""What the creation of a webhook endpoint asks for, checked.

interface.md section 4: POST /webhooks has a JSON object for a body, whose fields are not shown. The
sandbox's own choice: `url`, required (see urls.py); `events`, a list of kinds, every kind if not
given; `description`, a short text; any other field is kept as sent, as on a transaction, but for the
names that the service itself sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from escrowctl.sandbox.body import JsonObject, JsonValue
from escrowctl.sandbox.endpoints import RESERVED_FIELDS
from escrowctl.sandbox.events import EventKind
from escrowctl.sandbox.problems import Flaw, flawed
from escrowctl.sandbox.urls import URL_RULE, is_endpoint_url

MAX_DESCRIPTION_LENGTH = 500

OWN_FIELDS = frozenset({"url", "events", "description"})

EVENTS_RULE = f"events must be a list of one or more of {', '.join(EventKind)}, none twice."


@dataclass(frozen=True, slots=True)
class Registration:
    """An endpoint before it has an id; `events` None means every kind."""

    url: str
    events: tuple[EventKind, ...] | None
    description: str | None
    extra: JsonObject


def read_registration(body: JsonObject) -> Registration:
    """Check the fields of a creation; 400 with every flaw at once."""
    flaws = [Flaw(f"#/{name}", f"{name} is set by the service.") for name in sorted(RESERVED_FIELDS & body.keys())]
    registration = Registration(
        url=_url(body, flaws),
        events=_events(body, flaws),
        description=_description(body, flaws),
        extra={name: value for name, value in body.items() if name not in OWN_FIELDS},
    )
    if flaws:
        raise flawed(*flaws)
    return registration


def _url(body: JsonObject, flaws: list[Flaw]) -> str:
    value = body.get("url")
    if isinstance(value, str) and is_endpoint_url(value):
        return value
    flaws.append(Flaw("#/url", f"url {URL_RULE}"))
    return ""


def _events(body: JsonObject, flaws: list[Flaw]) -> tuple[EventKind, ...] | None:
    if "events" not in body:
        return None
    kinds = _kinds(body["events"])
    if not kinds or len(set(kinds)) != len(kinds):
        flaws.append(Flaw("#/events", EVENTS_RULE))
    return kinds


def _kinds(value: JsonValue) -> tuple[EventKind, ...]:
    """The kinds in a list; none at all if it is no list, or holds anything else."""
    known = {str(kind): kind for kind in EventKind}
    if isinstance(value, str) or not isinstance(value, Sequence):
        return ()
    names = [item for item in value if isinstance(item, str) and item in known]
    return tuple(known[name] for name in names) if len(names) == len(value) else ()


def _description(body: JsonObject, flaws: list[Flaw]) -> str | None:
    if "description" not in body:
        return None
    value = body["description"]
    if isinstance(value, str) and len(value) <= MAX_DESCRIPTION_LENGTH:
        return value
    flaws.append(Flaw("#/description", f"description must be text of at most {MAX_DESCRIPTION_LENGTH} characters."))
    return None
