"""`journal resolve`: reads that settle an unknown write, where, and with which profile."""

import contextlib
import os
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, NOW, Run, Serve, ServiceAndRun
from wire_server import Behave, hang_up

from cli.conftest import Journal, Profile, UnknownWrite, start_elsewhere
from cli.replies import (
    CREATE,
    HELD,
    RELEASE,
    RELEASED,
    STATUS_RELEASED,
    WEBHOOK,
    holding,
    in_turn,
    json_reply,
    writes_meet,
)
from cli.unknown_writes import APPLIED, NOT_APPLIED, UUID, WHY, by_path, item, listing
from escrowctl.journal.model import AttemptRequest, Intent
from escrowctl.journal.opening import find_place, open_journal


def test_hint_of_a_job_runs_where_its_variables_are_not_set(run: Run, serve: Serve, tmp_path: Path) -> None:
    server = serve(writes_meet(hang_up, reads=listing()))
    journal_id = run("journal", "init", "-q").out.strip()
    job = {"CI": "true", "ESCROWCTL_MODE": "live", "ESCROWCTL_JOURNAL_ID": journal_id}
    job |= {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}
    failed = run(*CREATE, "--json", environ=job)
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "key").chmod(0o600)

    words = shlex.split(failed.error["hint"].partition(": ")[2].replace("=FILE", f"={tmp_path / 'key'}"))
    given = dict(word.split("=", 1) for word in words if word.startswith("ESCROWCTL_"))
    pasted = run(*words[words.index("escrowctl") + 1 :], "--json", environ=given)

    assert (failed.code, given["ESCROWCTL_JOURNAL_ID"], pasted.error["code"]) == (12, journal_id, "outcome_unknown")


@pytest.mark.parametrize(
    "behave", [json_reply(HELD), json_reply(b"", "404 No"), json_reply(b"", "500 Oh"), hang_up, json_reply(b"<html>")]
)
def test_other_readings_prove_no_release(unknown_write: UnknownWrite, journal: Journal, behave: Behave) -> None:
    server, run = unknown_write(RELEASE, writes_meet(hang_up, reads=in_turn(json_reply(HELD), behave)))

    result = run("journal", "resolve", "j1")

    assert (result.code, result.out, server.writes) == (12, "", [])
    assert journal() == [("release_transaction", "unknown")]


@pytest.mark.parametrize("answer", [hang_up, json_reply(b"", "500 Oh"), json_reply(b"<html>")])
def test_status_of_another_escrow_settles_nothing(profile: Profile, run: Run, journal: Journal, answer: Behave) -> None:
    another = json_reply(RELEASED.replace(b"tx_1", b"tx_2"))
    server = profile(STATUS_RELEASED, behave=writes_meet(answer, reads=in_turn(json_reply(HELD), another)))

    assert run(*RELEASE).code == 12
    result = run("journal", "resolve", "j1")

    assert (result.code, len(server.writes)) == (12, 1)
    assert "the service answered for tx_1 with the id tx_2" in result.err
    assert journal() == [("release_transaction", "unknown")]


def test_a_webhook_and_a_raw_call_stay_unknown(service_and_run: ServiceAndRun) -> None:
    endpoint = {"id": "wh_1", "url": "https://hooks.example.net/x"}
    server, run = service_and_run(by_path(listed=listing(endpoint), one=json_reply(HELD)))
    run(*WEBHOOK)
    run("api", "DELETE", "/hooks/wh_9", "--yes")
    sent = len(server.writes)

    results = [run("journal", "resolve", name) for name in ("j1", "j2")]

    assert ([result.code for result in results], len(server.writes)) == ([12, 12], sent)


@pytest.mark.parametrize(
    ("line", "options", "code"),
    [
        (RELEASE, ("j1", "--applied", "--id", "tx_2", *WHY), 2),
        (CREATE, ("j1", "--applied", *WHY), 2),
        (CREATE, ("j1", "--applied", "--id", "tx_1"), 2),
        (CREATE, ("j1", "--not-applied"), 2),
        (CREATE, ("j1", "--resend"), 2),
        (CREATE, ("j1", "--applied", "--resend", *WHY), 2),
        (CREATE, ("j1", "--not-applied", "--id", "tx_1", *WHY), 2),
        (CREATE, ("j1", "--applied", "--id", "tx_1", "--reason", " "), 2),
        (CREATE, ("j1", "--allow-unreadable"), 2),
        (CREATE, ("1",), 2),
        (CREATE, ("j9",), 6),
    ],
)
def test_contradictory_resolve_options_read_and_record_nothing(
    unknown_write: UnknownWrite, journal: Journal, line: tuple[str, ...], options: tuple[str, ...], code: int
) -> None:
    server, run = unknown_write(line, writes_meet(hang_up))

    result = run("journal", "resolve", *options, "--json")

    assert (result.code, result.out, server.seen) == (code, "", [])
    assert journal() == [(f"{line[1]}_transaction", "unknown")]


def test_settled_entry_is_shown_and_takes_no_other_decision(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))
    run(*CREATE)

    shown = run("journal", "resolve", "j1", terminal=True)
    refused = run(*APPLIED, "--id", "tx_1", "--json")

    assert shown.code == 0
    assert (refused.code, refused.error["code"], len(server.seen)) == (7, "already_done", 1)


def test_entry_is_settled_only_at_its_own_service(unknown_write: UnknownWrite, serve: Any, run: Run) -> None:
    unknown_write(CREATE, hang_up)
    other = serve(json_reply(HELD))
    around = {"ESCROWCTL_BASE_URL": other.base_url, "ESCROWCTL_API_KEY": "sk_test_1"}

    for verdict in ((), ("--not-applied", *WHY), ("--resend", "--yes", *WHY)):
        result = run("journal", "resolve", "j1", *verdict, "--json", environ=around)
        assert (result.code, result.out, other.seen) == (2, "", [])
        assert "j1 was sent to http://127.0.0.1:" in result.error["message"]


def test_read_does_not_overwrite_a_newer_record(unknown_write: UnknownWrite) -> None:
    word = (*APPLIED, "--id", "tx_9", "--allow-unreadable")

    def list_late(seen: Any, connection: Any) -> None:
        assert start_elsewhere(*word, ESCROWCTL_BASE_URL=server.base_url, ESCROWCTL_API_KEY=KEY).wait(20) == 0
        listing(item("tx_8", metadata=UUID))(seen, connection)

    server, run = unknown_write(CREATE, by_path(listed=list_late, one=json_reply(HELD)), new_uuid=lambda: UUID)

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, result.error["code"]) == (7, "busy")
    shown = run("journal", "show", "j1", "--json").json
    assert (shown["state"], shown["id"]) == ("done", "tx_9")


def test_signal_during_a_resolve_reports_the_state_of_the_entry(unknown_write: UnknownWrite) -> None:
    def interrupt(_seen: Any, _connection: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)

    _, run = unknown_write(CREATE, by_path(listed=interrupt, one=json_reply(HELD)))

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, "j1" in result.error["message"]) == (130, True)


def test_entry_is_resolved_only_with_the_profile_that_sent_it(serve: Any, run: Run, write_config: Any) -> None:
    server = serve(by_path(listed=listing(), one=json_reply(HELD)))
    write_config(
        f'[profiles.a]\nbase_url = "{server.base_url}"\n[profiles.b]\nbase_url = "{server.base_url}"\n'
        'service_id = "new"\n'
    )
    around = {"ESCROWCTL_API_KEY": KEY, "ESCROWCTL_BASE_URL": server.base_url}
    assert run(*CREATE, environ=around | {"ESCROWCTL_PROFILE": "a"}).code == 12
    sent = len(server.seen)
    other = around | {"ESCROWCTL_PROFILE": "b", "ESCROWCTL_API_KEY": "sk_test_of_b"}

    for verdict in ((), ("--resend", "--yes", *WHY), ("--resend", "--yes", "--allow-unreadable", *WHY)):
        result = run("journal", "resolve", "j1", *verdict, "--json", environ=other)
        assert (result.code, result.error["hint"].splitlines()[0]) == (2, "escrowctl -p a journal resolve j1")

    assert len(server.seen) == sent
    assert run(*NOT_APPLIED, "--allow-unreadable", environ=other).code == 0


@pytest.mark.parametrize(
    "now",
    ['[profiles.new]\nbase_url = "{url}"\n', '[profiles.a]\nbase_url = "{local}"\n'],
    ids=["the profile has another name", "its host is spelled otherwise"],
)
def test_entry_of_a_changed_profile_is_settled(
    serve: Any, run: Run, write_config: Any, journal: Journal, now: str
) -> None:
    server = serve(by_path(listed=listing(), one=json_reply(HELD)))
    local = server.base_url.replace("127.0.0.1", "localhost")
    write_config(f'[profiles.a]\nbase_url = "{server.base_url}"\n')
    around = {"ESCROWCTL_API_KEY": KEY, "ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_PROFILE": "a"}
    assert run(*CREATE, environ=around).code == 12
    text = now.format(url=server.base_url, local=local)
    write_config(text)
    around |= {"ESCROWCTL_PROFILE": text[10:].partition("]")[0], "ESCROWCTL_BASE_URL": text.split('"')[1]}

    assert run("journal", "resolve", "j1", environ=around).code == 12
    assert run(*NOT_APPLIED, environ=around).code == 0
    assert journal() == [("create_transaction", "not_applied")]


def test_hint_with_the_url_of_an_entry_is_safe_to_paste(service_and_run: ServiceAndRun, home: Path) -> None:
    """An import may bring any text as the URL of an entry."""
    url = "http://h;reboot/api/v1/transactions"
    with contextlib.closing(open_journal(find_place(home / "state"), now=lambda: NOW)) as journal:
        journal.begin(
            AttemptRequest(Intent("create_transaction", "http://h", "p", "POST", url, "{}", "key", "{}"), "r")
        )
    _, run = service_and_run(holding())

    hint = run("journal", "resolve", "j1", "--json").error["hint"]

    assert "ESCROWCTL_BASE_URL='http://h;reboot' escrowctl" in hint


def test_resolve_reads_an_unconfirmed_release_again(profile: Profile, run: Run, journal: Journal) -> None:
    reads = in_turn(*[json_reply(HELD)] * 3, json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=reads))
    assert run(*RELEASE).code == 16

    first, second = run("journal", "resolve", "j1", "--json"), run("journal", "resolve", "j1", "--json")

    assert (first.code, first.error["code"], second.code, len(server.writes)) == (16, "not_released", 0, 1)
    assert "status.released" not in first.error["hint"]
    assert "escrowctl already released tx_1" in run(*RELEASE).err
    assert journal() == [("release_transaction", "done")]
