"""Faults of the sandbox that the tests of the examiner patch in."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pytest

from escrowctl.contract.operations import (
    CREATE_TRANSACTION,
    DEFAULT_API_PREFIX,
    GET_TRANSACTION,
    GET_USER,
    LIST_TRANSACTIONS,
    Operation,
)
from escrowctl.sandbox import http, interface, requests
from escrowctl.sandbox.bodies import JsonObject, no_record
from escrowctl.sandbox.http import Call

Patch = Callable[[pytest.MonkeyPatch], None]


class Fault:
    """A fault: its patch, the operation that shows it, and the names that Schemathesis may give it."""

    def __init__(self, patch: Patch, operation: Operation, kind: str, *same: str) -> None:
        self.patch = patch
        self.operation = operation
        self.kinds = {kind, *same}
        # Schemathesis reports a fault that needs several calls under "Stateful tests".
        place = f"{operation.method} {DEFAULT_API_PREFIX}{operation.path}"
        self.finding = (kind, "Stateful tests" if kind == "EnsureResourceAvailability" else place)


def amount_as_text(patched: pytest.MonkeyPatch) -> None:
    create = interface.InterfaceCalls.create_transaction

    def with_text(self: interface.InterfaceCalls, call: Call) -> JsonObject:
        return {**create(self, call), "amount": "100"}

    patched.setattr(interface.InterfaceCalls, "create_transaction", with_text)


def user_without_a_field(patched: pytest.MonkeyPatch) -> None:
    get = interface.InterfaceCalls.get_user

    def with_less(self: interface.InterfaceCalls, call: Call) -> JsonObject:
        return {name: value for name, value in get(self, call).items() if name != "created_at"}

    patched.setattr(interface.InterfaceCalls, "get_user", with_less)


def key_ignored_on_one_route(patched: pytest.MonkeyPatch) -> None:
    check = http.Router.check_key

    def check_elsewhere(self: http.Router, environ: Any) -> None:
        if not environ["PATH_INFO"].startswith("/api/v1/users/"):
            check(self, environ)

    patched.setattr(http.Router, "check_key", check_elsewhere)


def failing_on_a_large_amount(patched: pytest.MonkeyPatch) -> None:
    """Fifteen digits, as if no check came before they overflow 64 bits."""

    def overflow(text: str) -> None:
        if len(text) > 14 and text.isdigit():
            raise OverflowError(text)

    class Unchecked:
        def fullmatch(self, text: str) -> re.Match[str] | None:
            overflow(text)
            return amount.fullmatch(text)

    amount = requests.AMOUNT_PATTERN
    patched.setattr(requests, "AMOUNT_PATTERN", Unchecked())


def zero_limit_accepted(patched: pytest.MonkeyPatch) -> None:
    """200 where the document says 400."""
    read = vars(interface)["read_query"]

    def lenient(call: Call, model: type[requests.PageQuery]) -> requests.PageQuery:
        is_zero = call.query.get("limit") == "0"
        found: requests.PageQuery = read(call._replace(query={}) if is_zero else call, model)
        return found

    patched.setattr(interface, "read_query", lenient)


def cents_refused(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(requests, "AMOUNT_PATTERN", re.compile("[1-9][0-9]{0,13}"))


def status_not_documented(patched: pytest.MonkeyPatch) -> None:
    status = http.success_status

    def accepted(operation: Operation) -> int:
        return 202 if operation is CREATE_TRANSACTION else status(operation)

    patched.setattr(http, "success_status", accepted)


def answers_without_a_request_id(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(http, "REQUEST_ID_HEADER", "X-Other")


def problems_as_plain_json(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(http, "PROBLEM_TYPE", "application/json")


def created_and_not_found(patched: pytest.MonkeyPatch) -> None:
    """An acknowledged create that cannot be read."""

    def get_nothing(_self: Any, call: Call) -> NoReturn:
        raise no_record("transaction", call.resource_id)

    patched.setattr(interface.InterfaceCalls, "get_transaction", get_nothing)


FAULTS: Mapping[str, Fault] = {
    "an amount as text": Fault(amount_as_text, CREATE_TRANSACTION, "JsonSchemaError"),
    "a key ignored on one route": Fault(key_ignored_on_one_route, GET_USER, "IgnoredAuth", "MissingHeaderNotRejected"),
    "a 500 for a large amount": Fault(failing_on_a_large_amount, CREATE_TRANSACTION, "ServerError"),
    "a 200 where the document says 400": Fault(zero_limit_accepted, LIST_TRANSACTIONS, "AcceptedNegativeData"),
    "a record without a field": Fault(user_without_a_field, GET_USER, "JsonSchemaError"),
    "a good amount refused": Fault(cents_refused, CREATE_TRANSACTION, "RejectedPositiveData"),
    "a status that is not documented": Fault(status_not_documented, CREATE_TRANSACTION, "UndefinedStatusCode"),
    "an answer without its header": Fault(answers_without_a_request_id, GET_USER, "MissingHeaders"),
    "a problem declared as something else": Fault(problems_as_plain_json, GET_USER, "UndefinedContentType"),
    "a create that is not there afterwards": Fault(
        created_and_not_found, GET_TRANSACTION, "EnsureResourceAvailability"
    ),
}
