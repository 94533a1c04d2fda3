"""What a reply to a create proves: only what payment APIs document as a create is reported as one."""

import socket

import pytest
from conftest import ServiceAndRun
from create_replies import CREATED, CreateReply
from framework_errors import FRAMEWORK_ERRORS
from payment_errors import PAYMENT_ERRORS
from wire_server import Behave, Seen, http_reply

NOTHING_CREATED = (*PAYMENT_ERRORS, *FRAMEWORK_ERRORS)
CREATE = ("tx", "create", "--amount", "100", "--currency", "USD")

End = tuple[int, str, str]
"""Exit code, stdout under -q, and the state in the journal."""


def replies_in_turn(replies: tuple[CreateReply, ...]) -> Behave:
    """Answer each create with the next reply; nothing can be read by an id."""
    waiting = list(replies)

    def behave(seen: Seen, connection: socket.socket) -> None:
        if seen.method != "POST":
            connection.sendall(http_reply("404 Not Found", b'{"detail":"no such transaction"}'))
            return
        reply = waiting.pop(0)
        connection.sendall(http_reply(reply.status, reply.encode(), *reply.headers))

    return behave


def ends(service_and_run: ServiceAndRun, replies: tuple[CreateReply, ...]) -> dict[str, End]:
    """Return how one create ends for each reply; every command has its own reference."""
    server, run = service_and_run(replies_in_turn(replies))
    results = [run(*CREATE, "--reference", f"r{number}", "-q") for number in range(len(replies))]
    entries = reversed(run("journal", "list", "--limit", "1000", "--json").json)
    assert len(server.writes) == len(replies)
    return {
        reply.source: (result.code, result.out, entry["state"])
        for reply, result, entry in zip(replies, results, entries, strict=True)
    }


def right_ends(replies: tuple[CreateReply, ...]) -> dict[str, End]:
    return {
        reply.source: (
            reply.code,
            f"{reply.made}\n" if reply.made else "",
            "unknown" if not reply.made else "done" if reply.code == 0 else "unconfirmed",
        )
        for reply in replies
    }


@pytest.mark.slow
def test_reply_that_created_nothing_is_unknown_or_failed(service_and_run: ServiceAndRun) -> None:
    assert len(NOTHING_CREATED) >= 40

    assert ends(service_and_run, NOTHING_CREATED) == right_ends(NOTHING_CREATED)


def test_reply_of_a_real_create_is_done_with_its_id(service_and_run: ServiceAndRun) -> None:
    assert len(CREATED) >= 15

    assert ends(service_and_run, CREATED) == right_ends(CREATED)


def test_every_reply_names_its_source_once() -> None:
    sources = [reply.source for reply in (*NOTHING_CREATED, *CREATED)]

    assert len(set(sources)) == len(sources)
