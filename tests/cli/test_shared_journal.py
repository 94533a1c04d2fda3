"""A journal in a database, as operators and jobs on several machines use it."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from conftest import Run, ServiceAndRun
from wire_server import Seen, by_method, http_reply

from cli.conftest import Machine, StartShared
from cli.replies import CREATE, HELD, RELEASED, holding, json_reply

if TYPE_CHECKING:
    from storage.postgres import Server

pytestmark = pytest.mark.slow  # a server has to be started


def test_two_machines_release_once(shared: StartShared) -> None:
    behave = by_method(GET=json_reply(HELD), PUT=json_reply(RELEASED))
    server, (first, second) = shared("one", "two", behave=behave)

    codes = [each("tx", "release", "tx_1", "--yes").code for each in (first, second)]

    assert codes[1] == 7
    assert [seen.method for seen in server.seen].count("PUT") == 1
    assert second("journal", "list").out == first("journal", "list").out != ""


def test_create_needs_few_round_trips(shared: StartShared, monkeypatch: pytest.MonkeyPatch) -> None:
    from escrowctl.journal.postgres.connection import PostgresConnection

    _, (alone,) = shared("one")
    assert alone(*CREATE, "--reference", "A-1").code == 0
    trips = list[str]()
    for name in ("execute", "execute_script", "execute_briefly", "pipeline"):
        monkeypatch.setattr(PostgresConnection, name, note_outermost(trips, name, getattr(PostgresConnection, name)))

    assert alone(*CREATE, "--reference", "A-2").code == 0

    assert len(trips) <= 12, trips


def test_wait_for_the_database_is_drawn(
    shared: StartShared, postgres: "Server", url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from escrowctl.output.console import Console

    drawn, name = set[str](), url.rpartition("=")[2]
    _, (run,) = shared("one")
    monkeypatch.setattr(Console, "draw_wait", lambda _, text, _seconds: drawn.add(text))
    with psycopg.connect(postgres.url) as database:
        database.execute(f"LOCK TABLE {name}.records".encode())
        end = threading.Timer(0.5, database.rollback)
        end.start()
        assert run(*CREATE, "--reference", "A-1").code == 0
        end.join()

    assert any("the database" in text for text in drawn)


def note_outermost(trips: list[str], name: str, method: Callable[..., object]) -> Callable[..., object]:
    """Return a method that notes its name, but not those of the methods that it calls."""

    def noting(*args: object, **keywords: object) -> object:
        trips.append(name)
        before = len(trips)
        try:
            return method(*args, **keywords)
        finally:
            del trips[before:]

    return noting


def test_journal_is_set_up_once_and_by_init_alone(
    service_and_run: ServiceAndRun, machine: Callable[..., Machine], tmp_path: Path, postgres: "Server", url: str
) -> None:
    server, _ = service_and_run(holding())
    run = machine(server, "one")

    checks = {one["name"]: one["verdict"] for one in run("doctor", "--json").json["checks"]}
    assert (checks["journal"], "database" in checks, run("journal", "import", "--own").code) == ("failed", False, 17)
    assert run("journal", "list", "--unknown").code == 17
    refused, undecided = run(*CREATE, "--reference", "A-1", "--json"), run("journal", "init")
    assert (refused.code, "journal init" in refused.error["hint"], undecided.code, server.writes) == (17, True, 2, [])
    assert "CREATE TABLE" in run("journal", "init", "--print").out
    made, again = run("journal", "init", "--single-role", "-q"), run("journal", "init", "-q")
    assert "may change records" in made.err
    assert (made.code, again.code, made.out) == (0, 0, again.out)
    assert run(*CREATE, "--reference", "A-1", environ={"ESCROWCTL_JOURNAL_ID": made.out.strip()}).code == 0
    other = {"ESCROWCTL_JOURNAL_ID": "00000000-0000-0000-0000-000000000001"}
    assert run(*CREATE, "--reference", "A-2", environ=other).code == 17
    assert run("journal", "verify").code == 0
    (kept,) = (tmp_path / "one" / "state" / "shared").glob("*.id")
    kept.write_text(f"{kept.read_text()}\n")  # an editor has added it
    assert (run(*CREATE, "--reference", "A-1").code, len([*kept.parent.glob("*.head")])) == (7, 1)
    assert run("journal", "list", environ={"ESCROWCTL_JOURNAL": ""}).out == ""
    for content in (b"\xff", b"x" * 500):
        kept.write_bytes(content)
        refused = run(*CREATE, "--reference", "A-1")
        assert (refused.code, "init --from" in refused.err) == (17, False)
    kept.write_text(made.out)
    with psycopg.connect(postgres.url) as database:
        database.execute("SET session_replication_role = 'replica'")
        database.execute(f"DELETE FROM {url.rpartition('=')[2]}.journal".encode())
    assert run("journal", "list").code == 17


def test_url_with_a_password_is_refused_and_not_shown(
    service_and_run: ServiceAndRun, machine: Callable[..., Machine], write_config: Callable[[str], Path]
) -> None:
    server, run = service_and_run(holding())

    refused = run(*CREATE, environ={"ESCROWCTL_JOURNAL": "postgresql://ops:hunter2secret@127.0.0.1/pay"})
    write_config(f'[profiles.p]\nbase_url = "{server.base_url}"\njournal = "postgresql://o:hunter2secret@db/pay"\n')
    in_profile = run(*CREATE, "-p", "p")

    assert (refused.code, in_profile.code, server.seen) == (2, 2, [])
    assert "hunter2" not in refused.err + in_profile.err


@pytest.mark.parametrize("value", ["", " ", "pay", f"postgresql://ops@db.example.com/pay?journal={'x' * 41}"])
def test_variable_that_is_no_url_is_refused_and_hides_nothing(value: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(holding())

    refused = run(*CREATE, "--json", environ={"ESCROWCTL_JOURNAL": value})

    assert (refused.code, refused.error["code"], server.seen) == (2, "bad_value", [])
    assert "***" not in refused.err


def test_profile_and_variable_that_differ_are_refused(
    service_and_run: ServiceAndRun, write_config: Callable[[str], Path]
) -> None:
    server, run = service_and_run(holding())
    write_config(f'[profiles.p]\nbase_url = "{server.base_url}"\njournal = "postgresql://localhost/pay"\n')

    result = run(*CREATE, "-p", "p", environ={"ESCROWCTL_JOURNAL": "postgresql://localhost/other"})

    assert (result.code, server.seen) == (2, [])


def test_url_of_a_service_whose_profile_shares_a_journal_is_refused(
    service_and_run: ServiceAndRun, machine: Callable[..., Machine], write_config: Callable[[str], Path], url: str
) -> None:
    server, run = service_and_run(holding())
    write_config(f'[profiles.eu]\nbase_url = "{server.base_url}"\nmode = "live"\njournal = "{url}"\n')
    assert run("journal", "init", "--single-role", "-p", "eu").code == 0
    environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_MODE": "live"}

    results = [run(*CREATE, environ=environ | more) for more in ({}, {"ESCROWCTL_PROFILE": "eu"})]

    assert ([result.code for result in results], len(server.seen)) == ([2, 0], 1)


def test_database_that_fails_sends_nothing_or_leaves_an_unknown(
    shared: StartShared, postgres: "Server", url: str
) -> None:
    """The server stops before a create, and while another one waits for its reply."""

    def stop_and_reply(seen: Seen, connection: socket.socket) -> None:
        postgres.stop("immediate")
        connection.sendall(http_reply("200 OK", HELD))

    server, (run,) = shared("one", behave=stop_and_reply)

    afterwards = run(*CREATE, "--reference", "A-1")
    before = run(*CREATE, "--reference", "A-2")
    postgres.start()
    with psycopg.connect(postgres.url, autocommit=True) as database:
        # The first create's process has ended, and its lease soon does.
        database.execute(f"UPDATE {url.rpartition('=')[2]}.senders SET expires_at = clock_timestamp()".encode())

    assert (afterwards.code, before.code, len(server.seen)) == (12, 17, 1)
    assert "PGPASSWORD" in before.err
    assert run(*CREATE, "--reference", "A-1").code == 12
    assert len(server.seen) == 1


def test_doctor_warns_of_a_user_who_may_change_records(shared: StartShared, postgres: "Server", url: str) -> None:
    _, (run,) = shared("one", behave=json_reply(b"[]"))
    name = url.rpartition("=")[2]
    found = {one["name"]: one for one in run("doctor", "--json").json["checks"]}
    assert (found["database"]["verdict"], "may change records" in found["database"]["finding"]) == ("warning", True)

    with psycopg.connect(postgres.url, autocommit=True) as database:
        database.execute(f"CREATE ROLE {name} LOGIN".encode())
    url = url.replace("postgres@", f"{name}@").replace(f"={name}", f"={name}b")
    script = run("journal", "init", "--print", environ={"ESCROWCTL_JOURNAL": url}).out
    with psycopg.connect(postgres.url) as database:
        database.execute(script.encode())
    found = {one["name"]: one for one in run("doctor", "--json", environ={"ESCROWCTL_JOURNAL": url}).json["checks"]}
    assert (found["database"]["verdict"], found["journal"]["verdict"]) == ("ok", "ok")


def test_sandbox_has_its_own_journal(run: Run) -> None:
    environ = {"ESCROWCTL_JOURNAL": "postgresql://127.0.0.1:1/nowhere"}

    assert run("--sandbox", *CREATE, environ=environ).code == 0
    assert run(*CREATE, environ=environ).code != 0
    refused = run("journal", "list", "--json", environ=environ)
    assert (refused.code, "127.0.0.1:1/nowhere" in refused.error["message"]) == (17, True)
