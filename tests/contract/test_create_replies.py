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


@pytest.mark.parametrize(
    ("replies", "least"),
    [pytest.param(NOTHING_CREATED, 40, marks=pytest.mark.slow), (CREATED, 15)],
    ids=["nothing created", "created"],
)
def test_create_ends_as_its_reply_proves(
    service_and_run: ServiceAndRun, replies: tuple[CreateReply, ...], least: int
) -> None:
    server, run = service_and_run(replies_in_turn(replies))

    # Every command has its own reference.
    results = [run(*CREATE, "--reference", f"r{number}", "-q") for number in range(len(replies))]
    entries = reversed(run("journal", "list", "--limit", "1000", "--json").json)

    assert len(server.writes) == len(replies) >= least
    found = {
        reply.source: (result.code, result.out, entry["state"])
        for reply, result, entry in zip(replies, results, entries, strict=True)
    }
    assert found == {
        reply.source: (
            reply.code,
            f"{reply.made}\n" if reply.made else "",
            "unknown" if not reply.made else "done" if reply.code == 0 else "unconfirmed",
        )
        for reply in replies
    }


def test_every_reply_names_its_source_once() -> None:
    sources = [reply.source for reply in (*NOTHING_CREATED, *CREATED)]

    assert len(set(sources)) == len(sources)
