"""What a hostile or broken service, or a typing mistake, must not cause; each was possible once."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, Serve, ServiceAndRun
from wire_server import Behave, Seen, WireServer, by_method, hang_up, http_reply

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, RELEASED, in_turn, json_reply, writes_meet
from cli.test_waiting import Clock


def record(resource_id: str, **fields: Any) -> bytes:
    return json.dumps({"id": resource_id, "status": "held", "amount": 100, "currency": "USD", **fields}).encode()


# Replies without a request


def too_many(*surplus: bytes, write: Behave) -> Behave:
    """Answer a read with its record and then some more; writes are answered by `write`."""

    def read(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(http_reply("200 OK", HELD) + b"".join(http_reply("200 OK", body) for body in surplus))

    return by_method(GET=read, PUT=write, POST=write)


def test_reply_received_before_the_write_is_not_its_reply(service_and_run: ServiceAndRun, journal: Journal) -> None:
    refuse = json_reply(b'{"detail":"insufficient funds"}', "422 No")
    server, run = service_and_run(too_many(RELEASED, RELEASED, write=refuse))

    result = run(*RELEASE, "--json")

    assert (result.code, result.error["code"], result.error["http_status"]) == (8, "refused", 422)
    assert (len(server.writes), journal()) == (1, [("release_transaction", "refused")])


def test_write_without_a_reply_is_unknown_despite_a_surplus_reply(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(too_many(RELEASED, write=hang_up))

    assert run(*RELEASE).code == 12


def test_surplus_reply_to_a_read_is_not_the_next_record(service_and_run: ServiceAndRun) -> None:
    def twice(seen: Seen, connection: socket.socket) -> None:
        reply = http_reply("200 OK", record(seen.target.rpartition("/")[2]))
        connection.sendall(reply + reply)

    _, run = service_and_run(twice)

    result = run("tx", "get", "tx_A", "tx_B", "tx_C", "--json")

    assert [json.loads(line)["record"]["id"] for line in result.out.splitlines()] == ["tx_A", "tx_B", "tx_C"]


def test_reads_share_a_connection_and_writes_have_their_own(serve: Serve, run: Run) -> None:
    places: list[tuple[str, int]] = []

    def behave(seen: Seen, connection: socket.socket) -> None:
        places.append((seen.method, connection.getpeername()[1]))
        connection.sendall(http_reply("200 OK", HELD))

    server = serve(behave)
    around = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}
    run("tx", "get", "tx_1", "tx_1", "tx_1", environ=around)
    assert len({port for _, port in places}) == 1
    places.clear()

    run(*RELEASE, environ=around)

    assert [method for method, _ in places] == ["GET", "PUT", "GET"]
    assert len({port for _, port in places}) == 3


# One escrow under several names


def test_second_release_of_a_typed_id_is_refused(service_and_run: ServiceAndRun) -> None:
    """The echo changes its case, and then cannot be read at all."""
    reads = in_turn(json_reply(record("TX_1")), json_reply(record("TX_1")), json_reply(b"", "500 Oh"))
    server, run = service_and_run(writes_meet(json_reply(b""), reads=reads))

    first = run(*RELEASE)
    again = run(*RELEASE, "--allow-unreadable")
    as_echoed = run("tx", "release", "TX_1", "--yes", "--allow-unreadable")

    assert ([first.code, again.code, as_echoed.code], len(server.writes)) == ([0, 7, 7], 1)


def test_release_is_not_sent_when_the_record_has_another_id(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(writes_meet(json_reply(b""), reads=json_reply(record("tx_2"))))

    results = [
        run(*RELEASE, "--expect-amount", "100", "--json"),
        run("tx", "update", "tx_1", "--data", '{"n":1}', "--yes", "--json"),
    ]

    assert ([result.code for result in results], server.writes, journal()) == ([10, 10], [], [])
    assert results[0].error["message"] == (
        "the service answered for tx_1 with the id tx_2, which may be another escrow. The release was not sent."
    )


@pytest.fixture
def profiles(serve: Serve, write_config: Callable[[str], Path], run: Run) -> Callable[..., tuple[WireServer, Run]]:
    """Write profiles, each by its lines, for one server; BASE is replaced by its URL, PORT by its port."""

    def write(behave: Behave, **lines: str) -> tuple[WireServer, Run]:
        server = serve(behave)
        text = "".join(f"[profiles.{name}]\n{body}\n" for name, body in lines.items())
        write_config(text.replace("BASE", server.base_url).replace("PORT", str(server.port)))
        around = {"ESCROWCTL_API_KEY": KEY}
        return server, lambda *words, **keywords: run(*words, environ=around | keywords.pop("environ", {}), **keywords)

    return write


@pytest.mark.representative("*-first0-*", "key-*")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"ESCROWCTL_PROFILE": "a"}, {"ESCROWCTL_PROFILE": "b"}),
        ({"ESCROWCTL_PROFILE": "a"}, {"ESCROWCTL_BASE_URL": "BASE"}),
        ({"ESCROWCTL_BASE_URL": "BASE"}, {"ESCROWCTL_PROFILE": "a"}),
        ({"ESCROWCTL_PROFILE": "a"}, {"ESCROWCTL_PROFILE": "c"}),
        ({"ESCROWCTL_PROFILE": "c"}, {"ESCROWCTL_PROFILE": "d"}),
        ({"ESCROWCTL_BASE_URL": "BASE"}, {"ESCROWCTL_BASE_URL": "http://localhost:PORT"}),
        ({"ESCROWCTL_BASE_URL": "http://LocalHost:PORT/"}, {"ESCROWCTL_BASE_URL": "http://127.0.0.1:PORT"}),
    ],
)
@pytest.mark.parametrize(
    ("line", "codes"),
    [(RELEASE, [0, 7]), ((*CREATE, "--reference", "r"), [0, 7]), ((*CREATE, "--idempotency-key", "k"), [0, 7])],
    ids=["release", "reference", "key"],
)
def test_duplicate_is_refused_under_another_name_of_the_service(
    profiles: Callable[..., tuple[WireServer, Run]],
    first: dict[str, str],
    second: dict[str, str],
    line: tuple[str, ...],
    codes: list[int],
) -> None:
    """A service_id joins names; it never parts an origin from itself."""
    server, run = profiles(
        writes_meet(json_reply(HELD)),
        a='base_url = "BASE"\nservice_id = "acme"',
        b='base_url = "BASE"\nmode = "test"',
        c='base_url = "BASE"\nservice_id = "other"\nmode = "test"',
        d='base_url = "http://localhost:PORT"\nservice_id = "third"',
    )

    def filled(environ: dict[str, str]) -> dict[str, str]:
        return {
            name: value.replace("BASE", server.base_url).replace("PORT", str(server.port))
            for name, value in environ.items()
        }

    found = [run(*line, environ=filled(environ) | _key_of(environ, server)).code for environ in (first, second)]

    if line[-2] == "--idempotency-key" and _spelled_alike(first, second):
        # The same request under the same key: its stored result.
        codes = [0, 0]
    assert (found, len(server.writes)) == (codes, 1)


def _key_of(environ: dict[str, str], server: WireServer) -> dict[str, str]:
    """A key from the environment belongs to the environment's URL: a profile needs that URL in the environment too."""
    if "ESCROWCTL_PROFILE" not in environ:
        return {}
    host = "localhost" if environ["ESCROWCTL_PROFILE"] == "d" else "127.0.0.1"
    return {"ESCROWCTL_BASE_URL": f"http://{host}:{server.port}"}


def _spelled_alike(first: dict[str, str], second: dict[str, str]) -> bool:
    names = [*first.values(), *second.values()]
    return not any("local" in name.casefold() or name == "d" for name in names)


# The key


def echo_in(head: str) -> Behave:
    """Answer with the Authorization header's value somewhere in the head, as bytes that are not HTTP."""

    def behave(seen: Seen, connection: socket.socket) -> None:
        connection.sendall(head.replace("KEY", seen.header("Authorization") or "").encode())
        connection.shutdown(socket.SHUT_RDWR)

    return behave


@pytest.mark.parametrize(
    "head",
    [
        "HTTP/1.1 200 OK\r\nX-Echo KEY\r\n\r\n",
        "KEY\r\n\r\n",
        "HTTP/1.1 KEY OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nKEY: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: KEY\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: KEY\r\n\r\n",
    ],
)
@pytest.mark.parametrize("line", [CREATE, ("tx", "get", "tx_1"), ("tx", "get", "tx_1", "--debug")])
def test_key_in_non_http_reply_is_neither_shown_nor_stored(
    service_and_run: ServiceAndRun, home: Path, line: tuple[str, ...], head: str
) -> None:
    _, run = service_and_run(echo_in(head))

    result = run(*line)

    shown = result.out + result.err + run("journal", "show", "j1").out
    assert KEY not in shown
    for path in home.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("key", ['ab"cd\\efGHIJKLMN', "sk/live+with=signs&more", "plainkey12345"])
def test_key_in_a_body_is_refused_in_every_spelling(service_and_run: ServiceAndRun, key: str) -> None:
    server, run = service_and_run(json_reply(HELD))
    around = {"ESCROWCTL_API_KEY": key}
    data = json.dumps({"note": f"x{key}"})

    results = [
        run(*CREATE, "--data", data, environ=around),
        run("api", "POST", "/notes", "--data", data, "--yes", environ=around),
        run("api", "GET", f"/users/u?x=%{ord(key[0]):02x}{key[1:]}", environ=around) if key[1:].isalnum() else None,
    ]

    assert [result.code for result in results if result] == [2] * len([one for one in results if one])
    assert server.seen == []


def test_key_with_json_escapes_is_starred_in_replies_and_traces(service_and_run: ServiceAndRun, home: Path) -> None:
    key = 'ab"cd\\efGHIJKLMN'
    _, run = service_and_run(json_reply(json.dumps({"id": "tx_1", "message": key}).encode()))

    result = run("tx", "get", "tx_1", "--debug", environ={"ESCROWCTL_API_KEY": key})

    shown = result.out + result.err
    assert (result.code, key in shown, json.dumps(key)[1:-1] in shown) == (0, False, False)


# What is no amount, and paths in parts


def test_a_path_of_any_length_ends_in_a_sentence(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    assert (run("api", "GET", f"/users/{'x' * 70_000}").code, server.seen) == (2, [])


def test_release_shows_its_body_before_the_confirmation(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(b"")))

    result = run("tx", "release", "tx_1", "--data", '{"amount":999999,"to":"x"}', stdin="tx_1\n", terminal=True)

    assert '  PUT {"amount":999999,"to":"x"}\n' in result.err
    assert (result.code, server.writes[0].body) == (0, b'{"amount":999999,"to":"x"}')


# What is reported of a release that was accepted


def test_accepted_is_not_called_released(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(writes_meet(json_reply(b"")))
    run(*RELEASE)

    again = run(*RELEASE, "--json")

    assert again.code == 7
    assert again.error["message"].startswith("the service already accepted the release of tx_1 ")
    assert "the journal has it as accepted, not as confirmed." in again.error["message"]


def test_release_without_the_right_to_read_is_sent_on_request(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(b""), reads=json_reply(b"", "403 Forbidden")))

    refused = run(*RELEASE, "--json")
    unread = len(server.writes)

    assert (refused.code, unread, "--allow-unreadable" in refused.error["hint"]) == (5, 0, True)
    expected = run(*RELEASE, "--allow-unreadable", "--expect-amount", "100", "--json")
    assert (expected.code, "could not be read" in expected.error["message"], server.writes) == (3, True, [])
    assert "--allow-unreadable" not in run(*RELEASE, "--expect-amount", "100", "--json").err
    assert (run(*RELEASE, "--allow-unreadable").code, len(server.writes)) == (0, 1)


def test_skip_released_succeeds_while_the_release_is_in_progress(
    profiles: Callable[..., tuple[WireServer, Run]],
) -> None:
    processing = json_reply(HELD.replace(b"held", b"processing"))
    reads = in_turn(json_reply(HELD), *[processing] * 4, json_reply(RELEASED))
    server, run = profiles(
        writes_meet(json_reply(b""), reads=reads), a='base_url = "BASE"\nstatus.released = ["released"]'
    )
    around = {"ESCROWCTL_PROFILE": "a", "ESCROWCTL_BASE_URL": server.base_url}
    run(*RELEASE, environ=around)

    again = run(*RELEASE, "--skip-released", "--json", environ=around)
    late = run(*RELEASE, "--skip-released", "--wait", "--deadline", "1s", environ=around, **Clock().injected)
    waited = run(*RELEASE, "--skip-released", "--wait", "--json", environ=around, **Clock().injected)

    assert (again.code, again.json["verified"], '"already_released"' in again.err) == (0, False, True)
    assert (late.code, "was accepted earlier" in late.err) == (13, True)
    assert (waited.code, waited.json["verified"], len(server.writes)) == (0, True, 1)
    assert run("journal", "list", "--state", "unconfirmed", "--json", environ=around).json == []


def test_escrow_that_reads_released_is_not_released(service_and_run: ServiceAndRun) -> None:
    """No profile says so; but that word is no reason to send it."""
    server, run = service_and_run(json_reply(RELEASED))

    refused, skipped = run(*RELEASE, "--json"), run(*RELEASE, "--skip-released", "--json")

    assert (refused.code, skipped.code, skipped.json["verified"], server.writes) == (7, 0, None, [])
    assert "ESCROWCTL_STATUS_RELEASED" in refused.error["hint"]


@pytest.mark.parametrize("before", ["held", "failed"])
def test_release_whose_escrow_then_reads_failed_is_not_confirmed(before: str, service_and_run: ServiceAndRun) -> None:
    failed = json_reply(HELD.replace(b"held", b"failed"))
    reads = in_turn(json_reply(HELD.replace(b"held", before.encode())), failed)
    server, run = service_and_run(writes_meet(json_reply(b""), reads=reads))

    released, skipped = run(*RELEASE, "--json"), run(*RELEASE, "--skip-released", "--json")

    assert (released.code, released.out, released.error["code"]) == (16, "", "not_released")
    assert (skipped.code, len(server.writes)) == (7, 1)


def test_release_in_progress_elsewhere_is_not_sent(profile: Profile, run: Run) -> None:
    server = profile('status.released = ["released"]', behave=json_reply(HELD.replace(b"held", b"processing")))

    refused = run(*RELEASE, "--json")
    skipped = run(*RELEASE, "--skip-released", "--json")

    assert (refused.code, skipped.code, skipped.json["verified"], server.writes) == (7, 0, False, [])
    assert "tx wait tx_1 --for released" in refused.error["hint"]
    profile(behave=json_reply(HELD.replace(b"held", b"processing")))
    assert "tx watch tx_1" in run(*RELEASE).err
    # This word may as well mean held.
    profile(behave=writes_meet(json_reply(HELD), reads=json_reply(HELD.replace(b"held", b"pending"))))
    assert run(*RELEASE).code == 0
    assert "may be in progress" in skipped.err


def test_release_needs_the_status_that_the_profile_goes_by(profiles: Callable[..., tuple[WireServer, Run]]) -> None:
    server, run = profiles(writes_meet(json_reply(HELD)), a='base_url = "BASE"\nreply.status = "/state"')
    around = {"ESCROWCTL_PROFILE": "a", "ESCROWCTL_BASE_URL": server.base_url}

    refused = run(*RELEASE, "--json", environ=around)
    unsent = len(server.writes)

    assert (refused.error["code"], refused.error["outcome"], unsent) == ("unreadable_reply", "not_sent", 0)
    assert "config set reply.status" in refused.error["hint"]
    assert (run(*RELEASE, "--allow-unreadable", environ=around).code, len(server.writes)) == (0, 1)


def test_skip_released_names_why_it_could_not_read(profiles: Callable[..., tuple[WireServer, Run]]) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED), json_reply(b"", "401 No"))
    server, run = profiles(
        writes_meet(json_reply(b""), reads=reads), a='base_url = "BASE"\nstatus.released = ["released"]'
    )
    around = {"ESCROWCTL_PROFILE": "a", "ESCROWCTL_BASE_URL": server.base_url}
    assert run(*RELEASE, environ=around).code == 0

    again = run(*RELEASE, "--skip-released", "--json", environ=around)

    assert (again.code, "could not be read now" in again.error["hint"], "401" in again.error["hint"]) == (7, True, True)


def test_skip_released_refuses_what_fails_while_it_waits(profiles: Callable[..., tuple[WireServer, Run]]) -> None:
    processing, failed = (json_reply(HELD.replace(b"held", status)) for status in (b"processing", b"failed"))
    reads = in_turn(json_reply(HELD), processing, processing, failed)
    server, run = profiles(
        writes_meet(json_reply(b""), reads=reads), a='base_url = "BASE"\nstatus.released = ["released"]'
    )
    around = {"ESCROWCTL_PROFILE": "a", "ESCROWCTL_BASE_URL": server.base_url}
    run(*RELEASE, environ=around)

    waited = run(*RELEASE, "--skip-released", "--wait", environ=around, **Clock().injected)

    assert (waited.code, waited.out, len(server.writes)) == (7, "", 1)


def test_skip_released_refuses_while_the_record_is_not_released(
    profiles: Callable[..., tuple[WireServer, Run]],
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD), json_reply(HELD), json_reply(RELEASED))
    server, run = profiles(
        writes_meet(json_reply(b""), reads=reads), a='base_url = "BASE"\nstatus.released = ["released"]'
    )
    around = {"ESCROWCTL_PROFILE": "a", "ESCROWCTL_BASE_URL": server.base_url}
    run(*RELEASE, environ=around)

    codes = [run(*RELEASE, "--skip-released", environ=around).code for _ in range(2)]

    assert (codes, len(server.writes)) == ([7, 0], 1)


# Replies that say no with a 2xx


@pytest.mark.representative("create-*")
@pytest.mark.parametrize(
    "body",
    [
        b"false",
        b'"error: insufficient funds"',
        b'[{"error":"x"}]',
        b'{"success":"false"}',
        b'{"Success":false}',
        b'{"success":0}',
        b'{"ok":0}',
        b'{"result":"error"}',
        b'{"error_code":"E1","error_message":"no"}',
        b'{"errorMessage":"no"}',
        b'{"type":"about:blank","title":"Forbidden","status":403}',
        b'{"fault":{"code":1}}',
        b'{"exception":"x"}',
    ],
)
@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
def test_success_status_with_an_error_body_is_not_done(
    service_and_run: ServiceAndRun, line: tuple[str, ...], body: bytes
) -> None:
    server, run = service_and_run(writes_meet(json_reply(body)))

    assert (run(*line).code, len(server.writes)) == (12, 1)


@pytest.mark.parametrize(
    "body", [b'{"id":"tx_1","error":null,"errors":[]}', b'{"id":"tx_1","error_code":0,"success":true}']
)
def test_success_status_with_empty_error_fields_is_done(service_and_run: ServiceAndRun, body: bytes) -> None:
    _, run = service_and_run(writes_meet(json_reply(body)))

    assert [run(*CREATE).code, run(*RELEASE).code] == [0, 0]


# Values beyond what anybody expects


def test_pointer_with_a_huge_index_finds_nothing(
    profiles: Callable[..., tuple[WireServer, Run]], journal: Journal
) -> None:
    server, run = profiles(json_reply(HELD), a=f'base_url = "BASE"\nreply.id = "/items/{"9" * 5000}"')

    result = run(*CREATE, environ={"ESCROWCTL_PROFILE": "a", "ESCROWCTL_BASE_URL": server.base_url})

    assert (result.code, len(server.writes), journal()) == (12, 1, [("create_transaction", "unknown")])


@pytest.mark.parametrize("amount", ["007.50", "5.", ".5", "1_0"])
def test_digits_that_are_not_a_json_number_become_null(service_and_run: ServiceAndRun, amount: str) -> None:
    _, run = service_and_run(json_reply(record("tx_1", amount=amount)))

    result = run("tx", "get", "tx_1", "--fields", "id,amount", "--json")

    assert json.loads(result.out) == {"id": "tx_1", "amount": None}


def test_user_name_that_is_not_text_does_not_stop_writes(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    assert (run(*CREATE, environ={"LOGNAME": "\udcff"}).code, len(server.writes)) == (0, 1)


def test_a_defect_after_the_bytes_left_is_recorded_as_unknown(
    service_and_run: ServiceAndRun, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, run = service_and_run(json_reply(HELD))

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr("escrowctl.writes.sending.judge_write", fail)
        result = run(*CREATE, "--json")

    assert (result.code, result.error["code"], len(server.writes)) == (12, "outcome_unknown", 1)
    assert journal() == [("create_transaction", "unknown")]
