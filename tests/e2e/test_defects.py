"""A defect in escrowctl itself: one sentence, exit 1, and a traceback for those who ask."""

from collections.abc import Callable

import pytest
from conftest import KEY
from wire_server import Behave, WireServer, http_reply

from e2e.script import Program

_BROKEN = """
import sys
from escrowctl.client.client import EscrowClient
from escrowctl.main import main

def break_down(*_arguments):
    raise ValueError("a place that nobody thought of, with sk_test_0123456789abcdef in it")

EscrowClient.{method} = break_down
sys.exit(main())
"""
_SENTENCE = "error: this is a defect in escrowctl (ValueError).\n"


@pytest.fixture
def there(program: Program, serve: Callable[[Behave], WireServer]) -> Program:
    """The program, pointed at a server that would answer."""
    return program.at(serve(lambda _seen, connection: connection.sendall(http_reply("200 OK", b'{"id":"tx_1"}'))))


@pytest.mark.parametrize(
    ("method", "words"),
    [("get_transaction", ("tx", "get", "tx_1")), ("make", ("tx", "create", "--amount", "1", "--currency", "USD"))],
)
def test_a_defect_is_one_sentence_and_never_a_traceback(there: Program, method: str, words: tuple[str, ...]) -> None:
    ended = there.python(_BROKEN.format(method=method), *words)
    assert (ended.code, ended.out) == (1, "")
    first, hint = ended.err.splitlines()
    assert (f"{first}\n", hint[:6]) == (_SENTENCE, "hint: ")


def test_a_defect_under_debug_has_its_traceback_before_the_sentence(there: Program) -> None:
    ended = there.python(_BROKEN.format(method="get_transaction"), "tx", "get", "tx_1", "--debug")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("Traceback (most recent call last):\n")
    assert "in break_down\n" in ended.err
    assert ended.err.index("Traceback") < ended.err.index(_SENTENCE)


def test_a_traceback_does_not_tell_the_key(there: Program) -> None:
    ended = there.python(_BROKEN.format(method="get_transaction"), "tx", "get", "tx_1", "--debug")
    assert KEY not in ended.err


def test_a_defect_under_json_is_a_document(there: Program) -> None:
    ended = there.python(_BROKEN.format(method="get_transaction"), "tx", "get", "tx_1", "--json")
    assert (ended.code, ended.out) == (1, "")
    assert (ended.error["code"], ended.error["exit_code"]) == ("defect", 1)
