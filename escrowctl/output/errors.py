"""Errors as text: for a person, lines with hints to paste; for a program, one JSON object."""

from escrowctl.contract.json import JsonValue, as_json, encode
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Hint, Invocation
from escrowctl.output.plain import safe

_NOTHING_SENT_EFFECTS = (Effect.NOTHING_SENT, Effect.NOTHING_SENT_NOW)
"""If a command has several ids, a message with one of these effects names the id."""

_MAX_SHORT_CHARS = 1000
_INDENT = 6
"""The length of `hint: `, which precedes the first hint. As many spaces precede the others."""


def format_error(error: EscrowctlError, invocation: Invocation, *, raw: bool, width: int | None) -> list[str]:
    """Return an error as lines for a person: the message, facts about an unknown outcome, and the hints.

    `raw`: add the complete body of the service's reply. `width` is the terminal's width; None without a terminal.
    """
    is_unknown = error.code is ErrorCode.OUTCOME_UNKNOWN
    lines = [f"{'unknown' if is_unknown else 'error'}: {safe(_complete_message(error))}"]
    facts = [*_list_reply(error, raw=raw, short=is_unknown), *(_list_support_facts(error) if is_unknown else ())]
    lines += [f"  {safe(line)}" for line in facts]
    return lines + format_hints(error.hints, invocation, width)


def format_hints(hints: tuple[Hint, ...], invocation: Invocation, width: int | None) -> list[str]:
    """Return hints as lines for a person. `hint: ` precedes the first line, and spaces precede the others."""
    lines = align_hints(hints, invocation, width=width)
    return [f"{' ' * _INDENT if number else 'hint: '}{safe(line)}" for number, line in enumerate(lines)]


def align_hints(hints: tuple[Hint, ...], invocation: Invocation, *, width: int | None = None) -> list[str]:
    """Return hints as lines, each with its label before its text. The texts of several hints are aligned.

    If a line is too long for a terminal of this `width`, each text is on the line below its label. So the terminal
    does not break a command inside a word, and the command can be copied.
    """
    pairs = []
    for hint in hints:
        start = invocation.program if hint.bare else invocation
        pairs.append((hint.label, f"{start} {hint.text}" if hint.is_command else hint.text))
    gap = "  " if len(hints) > 1 else " "
    labels = max((len(label) for label, _ in pairs), default=0) + 1
    lines = [f"{label + ':':<{labels}}{gap}{text}" if label else text for label, text in pairs]
    if width is None or all(_INDENT + len(line) <= width for line in lines):
        return lines
    step = "  " if all(_INDENT + 2 + len(text) <= width for label, text in pairs if label) else ""
    return [line for label, text in pairs for line in ((f"{label}:", f"{step}{text}") if label else (text,))]


def make_error_document(error: EscrowctlError, invocation: Invocation) -> dict[str, JsonValue]:
    """Return an error as `{"error": {...}}`: the code, the message, the hints, and every fact."""
    body: dict[str, object] = {
        "code": error.code.value,
        "message": _complete_message(error),
        "hint": "\n".join(align_hints(error.hints, invocation)) or None,
        "http_status": None,
        "request_id": None,
        "outcome": error.outcome.value if error.outcome else None,
        "exit_code": int(error.code.exit_code),
    }
    return {"error": as_json(body | dict(error.facts))}


def _complete_message(error: EscrowctlError) -> str:
    message, subject = error.message, error.subject
    if subject and subject not in message:
        message = f"{subject}: {message}"
    if error.effect is None:
        return message
    return f"{message} {error.effect}{f' for {subject}' if subject and error.effect in _NOTHING_SENT_EFFECTS else ''}."


def _list_reply(error: EscrowctlError, *, raw: bool, short: bool) -> list[str]:
    """Return lines with the service's request id and the reply: complete if `raw`, the start of JSON if `short`."""
    body, own_id = error.facts.get("body"), error.facts.get("service_request_id")
    is_shown = "body" in error.facts and (raw or short)
    lines: list[str] = []
    if isinstance(body, str):
        lines += [f"reply            {line}" for line in body.splitlines() if raw]
    elif is_shown:
        reply = encode(as_json(body))
        is_cut = not raw and len(reply) > _MAX_SHORT_CHARS
        lines.append(f"reply            {reply[:_MAX_SHORT_CHARS]}..." if is_cut else f"reply            {reply}")
    return lines + ([f"service's id     {own_id}  (its request id, for the service's support)"] if own_id else [])


def _list_support_facts(error: EscrowctlError) -> list[str]:
    """Return the facts that an operator quotes to the service's support: time, request, key, entry."""
    facts = error.facts
    request = facts.get("request")
    sent_at, key, entry, request_id = map(facts.get, ("sent_at", "idempotency_key", "entry", "request_id"))
    lines = []
    if isinstance(request, dict):
        method, url, body = request.get("method"), request.get("url"), request.get("body")
        lines.append(f"sent             {sent_at or 'time not known'}  {method} {url}{f'  {body}' if body else ''}")
    key_use = "deduplicates by it" if facts.get("deduplicates") else "is not known to deduplicate by it"
    reason = f'  "{facts["reason"]}"' if facts.get("reason") else ""
    lines.append(f"idempotency key  {key}  (this service {key_use})")
    return [*lines, f"entry            {entry}{reason}   request id {request_id}"]
