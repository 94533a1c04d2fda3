"""Errors as text: for a person, lines with hints to paste; for a program, one JSON object."""

from escrowctl.contract.json import JsonValue, as_json, encode
from escrowctl.contract.redaction import star, star_value
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Hint, Invocation
from escrowctl.output.plain import safe

_OF_ONE_ID = (Effect.NOTHING_SENT, Effect.NOTHING_SENT_NOW)
"""Effects that concern one id of several."""

_MAX_REPLY_CHARS = 1000
_INDENT = 6
"""Cells before a hint: `hint: `, or as many spaces."""


def error_lines(error: EscrowctlError, invocation: Invocation, *, raw: bool, width: int | None) -> list[str]:
    """Return the lines for a person: the sentence after `error` or `unknown`, the facts of an unknown, the hints.

    `raw`: show the complete body of the service's reply. `width`: of the terminal; None if there is none.
    """
    is_unknown = error.code is ErrorCode.OUTCOME_UNKNOWN
    lines = [f"{'unknown' if is_unknown else 'error'}: {safe(_sentences(error))}"]
    facts = [*_reply_lines(error, raw=raw, short=is_unknown), *(_unknown_block(error) if is_unknown else ())]
    lines += [f"  {safe(line)}" for line in facts]
    return lines + marked_hints(error.hints, invocation, width)


def marked_hints(hints: tuple[Hint, ...], invocation: Invocation, width: int | None) -> list[str]:
    """Return hints as the lines below a sentence, for a person. `width`: of the terminal; None if there is none."""
    lines = hint_lines(hints, invocation, width=width)
    return [f"{' ' * _INDENT if number else 'hint: '}{safe(line)}" for number, line in enumerate(lines)]


def hint_lines(hints: tuple[Hint, ...], invocation: Invocation, *, width: int | None = None) -> list[str]:
    """Return hints as lines. With several hints, the texts after the labels are aligned.

    If one is too long for a terminal of that `width`, each begins on the line below its label. Otherwise the
    terminal would break a command, which is to be copied, in the middle of a word.
    """
    pairs = [(hint.label, _text_of(hint, invocation)) for hint in hints]
    gap = "  " if len(hints) > 1 else " "
    labels = max((len(label) for label, _ in pairs), default=0) + 1
    lines = [f"{label + ':':<{labels}}{gap}{text}" if label else text for label, text in pairs]
    if width is None or all(_INDENT + len(line) <= width for line in lines):
        return lines
    step = "  " if all(_INDENT + 2 + len(text) <= width for label, text in pairs if label) else ""
    return [line for label, text in pairs for line in ((f"{label}:", f"{step}{text}") if label else (text,))]


def _text_of(hint: Hint, invocation: Invocation) -> str:
    start = invocation.program if hint.bare else invocation
    return f"{start} {hint.text}" if hint.is_command else hint.text


def star_error(error: EscrowctlError, key: str) -> EscrowctlError:
    """Return a copy of the error in which the API key is starred everywhere."""
    starred = EscrowctlError(
        error.code,
        star(error.message, key),
        hint=tuple(hint._replace(text=star(hint.text, key), label=star(hint.label, key)) for hint in error.hints),
        outcome=error.outcome,
        effect=error.effect,
        facts={name: star_value(as_json(value), key) for name, value in error.facts.items()},
        reason=error.reason,
    )
    starred.subject = star(error.subject, key) if error.subject else None
    return starred


def error_document(error: EscrowctlError, invocation: Invocation) -> dict[str, JsonValue]:
    """Return `{"error": {...}}`: the code, the sentences, and every fact of the error."""
    body: dict[str, object] = {
        "code": error.code.value,
        "message": _sentences(error),
        "hint": _hint_of(error.hints, invocation),
        "http_status": None,
        "request_id": None,
        "outcome": error.outcome.value if error.outcome else None,
        "exit_code": int(error.exit_code),
    }
    return {"error": as_json(body | dict(error.facts))}


def _sentences(error: EscrowctlError) -> str:
    message, subject = error.message, error.subject
    if subject and subject not in message:
        message = f"{subject}: {message}"
    if error.effect is None:
        return message
    of_one = f" for {subject}" if subject and error.effect in _OF_ONE_ID else ""
    return f"{message} {error.effect}{of_one}."


def note_document(code: str, message: str, hints: tuple[Hint, ...], invocation: Invocation) -> JsonValue:
    """Return `{"note": {...}}`, the form of every other stderr line under `--json`."""
    hint = _hint_of(hints, invocation)
    return {"note": {"code": code, "message": message, **({"hint": hint} if hint else {})}}


def _hint_of(hints: tuple[Hint, ...], invocation: Invocation) -> str | None:
    return "\n".join(hint_lines(hints, invocation)) or None


def _reply_lines(error: EscrowctlError, *, raw: bool, short: bool) -> list[str]:
    """Return the service's reply as lines (`short`: the beginning of JSON), and the service's id of the request."""
    body, own = error.facts.get("body"), error.facts.get("service_request_id")
    is_asked_for = "body" in error.facts and (raw or short)
    lines: list[str] = []
    if isinstance(body, str):
        lines += [f"reply            {line}" for line in body.splitlines() if raw]
    elif is_asked_for:
        reply = encode(as_json(body))
        is_cut = not raw and len(reply) > _MAX_REPLY_CHARS
        lines.append(f"reply            {reply[:_MAX_REPLY_CHARS]}..." if is_cut else f"reply            {reply}")
    return lines + ([f"service's id     {own}  (its request id, for the service's support)"] if own else [])


def _unknown_block(error: EscrowctlError) -> list[str]:
    """Return the facts that an operator quotes to the service's support: time, request, key, entry."""
    facts = error.facts
    request = facts.get("request")
    lines = []
    if isinstance(request, dict):
        body = f"  {request['body']}" if request.get("body") else ""
        lines.append(f"sent             {facts.get('sent_at')}  {request.get('method')} {request.get('url')}{body}")
    honoured = "deduplicates by it" if facts.get("deduplicates") else "is not known to deduplicate by it"
    lines.append(f"idempotency key  {facts.get('idempotency_key')}  (this service {honoured})")
    reason = f'  "{facts["reason"]}"' if facts.get("reason") else ""
    lines.append(f"entry            {facts.get('entry')}{reason}   request id {facts.get('request_id')}")
    return lines
