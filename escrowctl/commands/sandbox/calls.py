"""Calls that control the sandbox, for the `escrowctl sandbox` commands."""

from contextlib import closing

import typer

from escrowctl.contract.json import JsonValue, encode
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value
from escrowctl.session import Session, session_of


def sandbox_session(context: typer.Context) -> Session:
    """Return the session of a `sandbox` command. Raises `BAD_VALUE` if `--profile` or `--base-url` is given."""
    session = session_of(context)
    options = session.options
    for name, value in (("--profile", options.profile), ("--base-url", options.base_url)):
        if value is not None:
            raise bad_value(f"this command uses the built-in sandbox: leave {name} out.")
    return session


def call_sandbox(session: Session, method: str, path: str, body: JsonValue = None) -> dict[str, JsonValue]:
    """Send a call that controls the sandbox, and return the JSON object of the reply. The call is not recorded.

    The call goes to the sandbox's server if one runs, else to the sandbox in this process. Raises EscrowctlError:
    `ErrorCode.NO_CONNECTION` if there is no reply, else the code for a status other than 2xx.
    """
    from escrowctl.client.http import SUCCESS_STATUSES, Evidence, Request, make_headers  # noqa: PLC0415 - help does not need it
    from escrowctl.client.problem import REFUSAL_CODES  # noqa: PLC0415
    from escrowctl.config.service import MAX_LIST_BYTES  # noqa: PLC0415

    session.options.sandbox = True
    service = session.service._replace(api_prefix="")
    content = encode(body).encode() if body is not None else None
    headers = make_headers(request_id=session.runtime.new_uuid(), has_body=content is not None)
    request = Request(method, service.make_url(path), headers, content)
    with closing(session.connector.make_opener(service)()) as connection:
        exchange = connection.exchange(request, evidence=Evidence(), seconds=service.read_timeout, limit=MAX_LIST_BYTES)
    answer = exchange.answer
    if answer is None:
        raise EscrowctlError(ErrorCode.NO_CONNECTION, f"the sandbox did not answer: {exchange.fault}.")
    found = getattr(answer.reply, "value", None)
    if answer.status not in SUCCESS_STATUSES:
        detail = str((found or {}).get("detail") or f"the sandbox replied {answer.status}.")
        raise EscrowctlError(REFUSAL_CODES.get(answer.status, ErrorCode.BAD_VALUE), detail[:1].lower() + detail[1:])
    assert isinstance(found, dict), "the sandbox's own document"
    return found


def list_items(value: JsonValue) -> list[dict[str, JsonValue]]:
    """Return the JSON objects in a list, which is a part of the sandbox's reply."""
    assert isinstance(value, list), "the sandbox's own document"
    return [item for item in value if isinstance(item, dict)]
