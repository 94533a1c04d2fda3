"""Several processes on one home: of identical creates one is sent at a time. (Releases: faults/races.py.)"""

import socket
import threading
from collections import Counter

import pytest
from conftest import Serve
from wire_server import Seen, http_reply, say_nothing

from e2e.script import Program, finish

pytestmark = pytest.mark.slow

HELD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'
HANDS = 8


def test_unanswered_create_blocks_identical_ones_of_other_processes(program: Program, serve: Serve) -> None:
    server = serve(say_nothing)
    there = program.at(server)
    line = ("tx", "create", "--amount", "100", "--currency", "USD", "--timeout", "2", "--json")
    ended = [finish(process) for process in [there.start(*line) for _ in range(HANDS)]]

    assert Counter((result.code, result.error["code"]) for result in ended) == {
        (12, "outcome_unknown"): 1,
        (12, "earlier_unknown"): HANDS - 1,
    }
    assert len(server.writes) == 1
    assert there.journal() == [("create_transaction", "unknown")]


def test_only_one_of_identical_creates_is_in_flight(program: Program, serve: Serve) -> None:
    """The first is answered late; each of the others is legitimate, and goes when the one before is known."""
    count = threading.Lock()
    in_flight: list[int] = [0]
    most: list[int] = []
    made = iter(range(1, HANDS + 1))

    def create(_seen: Seen, connection: socket.socket) -> None:
        with count:
            in_flight[0] += 1
            most.append(in_flight[0])
            number = next(made)
        threading.Event().wait(1.0 if number == 1 else 0.05)  # a service takes its time
        with count:
            in_flight[0] -= 1
        connection.sendall(http_reply("200 OK", HELD.replace(b"tx_1", b"tx_%d" % number)))

    there = program.at(serve(create))
    line = ("tx", "create", "--amount", "100", "--currency", "USD", "-q")
    ended = [finish(process) for process in [there.start(*line) for _ in range(HANDS)]]

    assert Counter((result.code, result.out) for result in ended) == Counter(
        (0, f"tx_{number}\n") for number in range(1, HANDS + 1)
    )
    assert max(most) == 1
    assert there.journal() == [("create_transaction", "done")] * HANDS
