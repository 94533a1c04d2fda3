"""Several processes on one home: two hands cannot release twice, and one equal create waits for the other."""

import socket
import threading
from collections import Counter

import pytest
from conftest import Serve
from wire_server import Seen, by_method, http_reply, say_nothing

from e2e.script import SECONDS, Program, finish

HELD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'
HANDS = 8


@pytest.mark.thorough
def test_eight_hands_release_once(program: Program, serve: Serve) -> None:
    """No process sends before all eight have read the record as held; the answer comes when the first has sent."""
    all_have_read = threading.Barrier(HANDS)
    first_reads = iter(range(HANDS))

    def read(_seen: Seen, connection: socket.socket) -> None:
        if next(first_reads, None) is not None:
            all_have_read.wait(SECONDS)
        connection.sendall(http_reply("200 OK", HELD))

    server = serve(by_method(GET=read, PUT=lambda _seen, connection: connection.sendall(http_reply("204 No Content"))))
    there = program.at(server)
    processes = [there.start("tx", "release", "tx_1", "--yes", "-q") for _ in range(HANDS)]
    ended = [finish(process) for process in processes]

    assert Counter((result.code, result.out) for result in ended) == {(0, "tx_1\n"): 1, (7, ""): HANDS - 1}
    assert [(seen.method, seen.target) for seen in server.writes] == [("PUT", "/api/v1/transactions/tx_1/release")]
    assert there.journal() == [("release_transaction", "unconfirmed")]


@pytest.mark.thorough
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
