"""A shared journal takes the place of another one: of a machine's own, or of one that a failover left behind."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import psycopg
import pytest
from storage.writes import create

from cli.conftest import StartShared
from cli.replies import CREATE, json_reply
from escrowctl.journal.model import AttemptRequest
from escrowctl.journal.opening import open_journal
from escrowctl.journal.sqlite.place import SqlitePlace
from escrowctl.journal.transfer import write_archive
from escrowctl.journal_url import parse_journal_url

if TYPE_CHECKING:
    from storage.postgres import Server

pytestmark = pytest.mark.slow  # a server has to be started

ALONE = {"ESCROWCTL_JOURNAL": ""}
STEPS = ["001.sql", "roles.sql"]
TABLES = ("records", "entries", "keys", "totals")


def test_restored_older_database_is_refused_by_who_knows_better(
    shared: StartShared, postgres: "Server", tmp_path: Path, url: str
) -> None:
    server, (knows, is_new, reads) = shared("one", "two", "three")
    name = url.rpartition("=")[2]
    assert [one(*CREATE, "--reference", "A-1").code for one in (knows, reads)] == [0, 7]
    with psycopg.connect(postgres.url, autocommit=True) as database:
        for table in TABLES:
            database.execute(f"CREATE TABLE {name}.old_{table} AS TABLE {name}.{table}".encode())
        assert [knows(*CREATE, "--reference", "A-2").code, reads("journal", "list").code] == [0, 0]
        database.execute("SET session_replication_role = replica")
        for table in TABLES:
            database.execute(f"DELETE FROM {name}.{table}".encode())
            database.execute(f"INSERT INTO {name}.{table} TABLE {name}.old_{table}".encode())
    sent = len(server.seen)

    refused, unaware = knows(*CREATE, "--reference", "A-3"), is_new(*CREATE, "--reference", "A-3")

    assert (refused.code, "older copy" in refused.err) == (17, True)
    assert knows("batch", "resume", "b1", "--yes").code == 17
    assert (unaware.code, len(server.seen)) == (0, sent + 1)
    # So does one that has only read what is missing now.
    assert reads(*CREATE, "--reference", "A-3").code == 17
    # Another URL of the same database leads to the same saved head.
    other_url = {"ESCROWCTL_JOURNAL": url.replace("127.0.0.1", "localhost")}
    assert knows(*CREATE, "--reference", "A-3", environ=other_url).code == 17
    # The way on: a new journal of what is left.
    export, new = tmp_path / "export", {"ESCROWCTL_JOURNAL": url.replace(name, f"{name}_2")}
    kept = knows("journal", "export")
    export.write_text(kept.out)
    replacing = ("journal", "init", "--from", str(export), "--single-role", "--yes", "--json")
    opening = ("journal", "open", "--reason", "asked", "--yes")
    assert (kept.code, knows(*replacing).code, knows(*opening).code) == (17, 2, 17)
    # Nothing is left behind that who knows no better writes meanwhile.
    assert is_new(*CREATE, "--reference", "A-5").code == 0
    assert knows(*replacing, "--name", f"{name}_2").code == 7
    export.write_text(knows("journal", "export").out)
    made = knows(*replacing, "--name", f"{name}_2")
    # What is gone was overwritten by what came after: nobody can count it.
    assert (made.json["closed"], made.json["entries"], made.json["missing_records"]) == (True, 3, None)
    assert [one(*CREATE, "--reference", "A-4").code for one in (knows, is_new)] == [17, 17]
    assert [is_new(*CREATE, "--reference", one, environ=new).code for one in ("A-1", "A-5")] == [7, 7]
    recorded = ("--already-sent", "--reason", "lost")
    assert [is_new(*CREATE, "--reference", "A-2", *more, environ=new).code for more in (recorded, ())] == [12, 12]
    # A machine that knows of a missing write does not open the new journal without it.
    assert knows(*opening, environ=new).code == 17
    line = (*CREATE, "--reference", "A-4", "--reason", "asked")
    assert [is_new(*one, environ=new).code for one in (line, opening, line)] == [3, 0, 0]
    # The number of the entry that is missing was used again.
    assert knows(*CREATE, "--reference", "A-2", environ=new).code == 17
    assert len(server.seen) == sent + 3


def test_export_of_a_valid_journal_replaces_it_only_if_it_is_complete(
    shared: StartShared, tmp_path: Path, url: str
) -> None:
    _, (run,) = shared("one")
    name, export = url.rpartition("=")[2], tmp_path / "export"
    export.write_text(run("journal", "export").out)
    assert run(*CREATE, "--reference", "A-1").code == 0
    replacing = ("journal", "init", "--from", str(export), "--single-role", "--name", f"{name}_2", "--yes")

    assert run(*replacing).code == 7
    assert [step["file"] for step in run("journal", "init", "--plan", "--name", f"{name}_2", "--json").json] == STEPS
    export.write_text(run("journal", "export").out)
    assert [run(*replacing).code for _ in range(2)] == [0, 0]
    assert run("journal", "init", "--plan", "--name", f"{name}_2", "--json").json == []


def test_closed_journal_has_one_successor(shared: StartShared, tmp_path: Path, url: str) -> None:
    _, (run,) = shared("one", behave=json_reply(b"[]"))
    name, export = url.rpartition("=")[2], tmp_path / "export"
    export.write_text(run("journal", "export").out)
    replacing = ("journal", "init", "--from", str(export), "--single-role", "--yes", "--json", "--name")
    made = run(*replacing, f"{name}_2").json["journal_id"]

    second = run(*replacing, f"{name}_3")

    assert (second.code, made in second.error["message"], f"{name}_2 in" in second.error["hint"]) == (7, True, True)
    assert run("journal", "init", "--plan", "--name", f"{name}_3", "--json").json != []
    assert f"journal {made} ({name}_2 in" in run("journal", "list").err
    found = {one["name"]: one for one in run("doctor", "--json").json["checks"]}
    assert (found["journal"]["verdict"], made in found["journal"]["finding"]) == ("failed", True)


def test_own_journal_of_a_machine_is_imported_and_closed(shared: StartShared, tmp_path: Path, url: str) -> None:
    server, (run,) = shared("one")
    export = tmp_path / "export"
    assert run(*CREATE, "--reference", "A-1", environ=ALONE).code == 0

    refused = run(*CREATE, "--reference", "A-1", "--json")
    assert (refused.code, "import --own" in refused.error["hint"], len(server.seen)) == (17, True, 1)
    found = {one["name"]: one["verdict"] for one in run("doctor", "--json").json["checks"]}
    assert found["imported"] == "failed"
    # An import that leaves the own journal open is not enough: a job without the settings would write to it.
    export.write_text(run("journal", "export", environ=ALONE).out)
    assert run("journal", "import", str(export)).code == 0
    assert run(*CREATE, "--reference", "A-2").code == 17
    older = (tmp_path / "one" / "state" / "journal.db").read_bytes()
    assert [run("journal", "import", "--own").code for _ in range(2)] == [0, 0]
    assert [run(*CREATE, "--reference", name).code for name in ("A-1", "A-2")] == [7, 0]
    # A command without the settings cannot pay again, nor make itself another journal.
    forgetful = run(*CREATE, "--reference", "A-2", "--json", environ=ALONE)
    export.write_text(run("journal", "export", environ=ALONE).out)
    replacing = ("journal", "init", "--from", str(export), "--yes")
    new = {"ESCROWCTL_HOME": str(tmp_path / "new")}
    renewed = [run(*replacing, environ=ALONE | more).code for more in ({}, new)]
    assert (forgetful.code, "ESCROWCTL_JOURNAL" in forgetful.error["hint"], renewed) == (17, True, [7, 7])
    # Another shared journal does not know what this one has.
    other = {"ESCROWCTL_JOURNAL": f"{url}_2"}
    assert run("journal", "init", "--single-role", environ=other).code == 0
    elsewhere = run(*CREATE, "--reference", "A-1", "--json", environ=other)
    hints = (url.rpartition("=")[2] + " in" in elsewhere.error["hint"], "journal export" in elsewhere.error["hint"])
    assert (elsewhere.code, hints) == (17, (True, True))
    # Nor can an older copy, which is still open.
    (tmp_path / "one" / "state" / "journal.db").write_bytes(older)
    assert [run(*CREATE, "--reference", "A-2", environ=more).code for more in (ALONE, {})] == [17, 17]
    assert len(server.writes) == 2


def test_write_that_begins_while_the_own_journal_is_read_keeps_it_open(
    shared: StartShared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from escrowctl.commands.journal import transfer

    _, (run,) = shared("one")
    assert run(*CREATE, "--reference", "A-1", environ=ALONE).code == 0
    own = open_journal(SqlitePlace(tmp_path / "one" / "state"), now=lambda: datetime.now(UTC))
    with closing(own) as journal:

        def begin_first(*values: Any) -> Any:
            journal.begin(AttemptRequest(create(1), "run-1"))
            return write_archive(*values)

        monkeypatch.setattr(transfer, "write_archive", begin_first)
        assert run("journal", "import", "--own").code == 7


def test_own_journal_of_imported_writes_is_imported_too(shared: StartShared, tmp_path: Path) -> None:
    _, (run,) = shared("one")
    export = tmp_path / "export"
    assert run(*CREATE, "--reference", "A-1", environ=ALONE).code == 0
    export.write_text(run("journal", "export", environ=ALONE).out)
    assert run("journal", "init", "--from", str(export), "--yes", environ=ALONE).code == 0

    codes = [run(*words).code for words in ((*CREATE, "--reference", "A-1"), ("journal", "import", "--own"))]

    assert [*codes, run(*CREATE, "--reference", "A-1").code] == [17, 0, 7]


def test_machine_without_an_own_journal_gets_a_closed_one(shared: StartShared, url: str) -> None:
    _, (run,) = shared("one")
    other = {"ESCROWCTL_JOURNAL": f"{url}_2"}
    assert run("journal", "init", "--single-role", environ=other).code == 0

    assert run("journal", "import", "--own").code == 0

    assert [run(*CREATE, "--reference", "A-1", environ=more).code for more in (ALONE, {})] == [17, 0]
    # It has given way to one shared journal: another one does not know what was written since.
    assert run("journal", "import", "--own", environ=other).code == 7


def test_machine_that_wrote_to_a_shared_journal_uses_only_one_with_its_writes(
    shared: StartShared, tmp_path: Path, url: str
) -> None:
    server, (run, idle, two) = shared("one", "idle", "two")
    name, export = url.rpartition("=")[2], tmp_path / "export"
    other, second, third = ({"ESCROWCTL_JOURNAL": f"{url}_{ending}"} for ending in ("other", "2", "3"))
    assert run("journal", "init", "--single-role", environ=other).code == 0
    assert run(*CREATE, "--reference", "A-1").code == 0
    # A write that is refused or only rehearsed is none.
    assert [idle(*CREATE, "--reference", "A-1", *more).code for more in ((), ("--dry-run",))] == [7, 7]
    assert idle(*CREATE, "--reference", "A-2", environ=ALONE).code == 0

    forgetful = run(*CREATE, "--reference", "A-1", "--json", environ=ALONE)
    assert (forgetful.code, "ESCROWCTL_JOURNAL" in forgetful.error["hint"]) == (17, True)
    assert ("A-1" in forgetful.error["message"], "rm " in forgetful.error["hint"]) == (True, False)
    found = {one["name"]: one["verdict"] for one in run("doctor", "--json", environ=ALONE).json["checks"]}
    assert found["imported"] == "failed"
    # The account that has a name now may be the same.
    assert run("config", "set", "profiles.p.base_url", server.base_url).code == 0
    assert run("config", "set", "profiles.p.account", "main").code == 0
    named = {**ALONE, "ESCROWCTL_PROFILE": "p", "ESCROWCTL_BASE_URL": ""}
    assert [run(*CREATE, "--reference", "A-1", environ=more).code for more in (other, named)] == [17, 17]
    # It has sent nothing to this service (nobody listens there).
    assert run(*CREATE, environ={**ALONE, "ESCROWCTL_BASE_URL": "http://127.0.0.1:9"}).code == 11
    for old, ending in (({}, "2"), (second, "3")):
        export.write_text(two("journal", "export", environ=old).out)
        new = ("journal", "init", "--from", str(export), "--single-role", "--yes", "--name", f"{name}_{ending}")
        assert two(*new, environ=old).code == 0
    assert run(*CREATE, "--reference", "A-1", environ=third).code == 7
    exports = list[str]()
    for name in ("A-4", "A-5"):
        run("journal", "open", "--reason", "asked", "--yes", environ=third)
        assert run(*CREATE, "--reference", name, environ=third).code == 0
        exports.append(two("journal", "export", environ=third).out)
    for text, code in zip(exports, (17, 7), strict=True):
        export.write_text(text)
        assert run("journal", "import", str(export), environ=ALONE).code == 0
        assert run(*CREATE, "--reference", "A-1", environ=ALONE).code == code
    kept = min((tmp_path / "one").rglob("*.write"))
    kept.write_bytes(b"\xff")
    damaged = run(*CREATE, "--reference", "A-3", environ=ALONE)
    assert (damaged.code, str(kept) in damaged.err) == (17, True)
    kept.parent.rename(tmp_path / "aside")
    kept.parent.touch()
    assert run(*CREATE, "--reference", "A-3", environ=ALONE).code == 17
    assert len(server.writes) == 4


def test_journal_that_was_made_anew_is_not_lost_with_the_next(
    shared: StartShared, postgres: "Server", tmp_path: Path, url: str
) -> None:
    _, (knows, two, three) = shared("one", "two", "three")
    name, export = url.rpartition("=")[2], tmp_path / "export"
    assert knows(*CREATE, "--reference", "A-1").code == 0
    export.write_text(knows("journal", "export").out)
    assert knows(*CREATE, "--reference", "A-2").code == 0
    replacing = ("journal", "init", "--from", str(export), "--single-role", "--yes", "--json", "--name", f"{name}_2")
    with psycopg.connect(postgres.url, autocommit=True) as database:
        database.execute(f"DROP SCHEMA {name} CASCADE".encode())
        assert knows("journal", "init", "--single-role").code == 17
        assert [two(*words).code for words in (("journal", "init", "--single-role"), CREATE)] == [0, 0]
        assert knows(*replacing).code == 7
        database.execute(f"DROP SCHEMA {name} CASCADE".encode())
    assert three("journal", "init", "--single-role").code == 0

    made = knows(*replacing)

    assert (made.code, made.json["missing_records"], made.json["closed"]) == (0, 2, True)


def test_own_and_imported_entries_must_both_be_in_the_shared_journal(
    shared: StartShared, tmp_path: Path, url: str
) -> None:
    server, (one, two) = shared("one", "two")
    exports = tmp_path / "A", tmp_path / "B"
    only_a, only_b = ({"ESCROWCTL_JOURNAL": f"{url}_{ending}"} for ending in ("a", "b"))
    assert [one("journal", "init", "--single-role", environ=more).code for more in (only_a, only_b)] == [0, 0]
    for run, export in ((one, exports[0]), (two, exports[1])):
        assert run(*CREATE, "--reference", export.name, environ=ALONE).code == 0
        export.write_text(run("journal", "export", environ=ALONE).out)
    assert one("journal", "import", str(exports[1]), environ=ALONE).code == one("journal", "import", "--own").code == 0
    for export, more in zip(exports, (only_a, only_b), strict=True):
        assert two("journal", "import", str(export), environ=more).code == 0

    codes = [one(*CREATE, "--reference", name, environ=more).code for more, name in ((only_a, "B"), (only_b, "A"))]
    assert (codes, len(server.writes)) == ([17, 17], 2)


def test_journal_is_not_closed_while_a_write_is_in_progress(shared: StartShared, tmp_path: Path, url: str) -> None:
    """Its successor would not wait for what may still arrive."""
    from escrowctl.journal.postgres.place import PostgresPlace

    _, (run,) = shared("one")
    export, name = tmp_path / "export", url.rpartition("=")[2]
    replacing = ("journal", "init", "--from", str(export), "--yes")
    lines = ((*replacing, "--single-role", "--name", f"{name}_2"), (*replacing,), ("journal", "import", "--own"))
    environs: list[dict[str, str]] = [{}, ALONE, {}]
    codes = list[int]()
    for place in (PostgresPlace(parse_journal_url(url), tmp_path), SqlitePlace(tmp_path / "one" / "state")):
        with closing(open_journal(place, now=lambda: datetime.now(UTC))) as journal:
            journal.begin(AttemptRequest(create(1), "run-1"))
            export.write_text(run("journal", "export", environ={} if place.is_shared else ALONE).out)
            which = (0,) if place.is_shared else (1, 2)
            codes += [run(*lines[one], environ=environs[one]).code for one in which]

    assert codes == [7, 7, 7]
    assert run("journal", "import", "--own").code == 0


@pytest.mark.parametrize(
    ("step", "made_before"),
    [("fill_from_export", ""), ("close_journal", ""), ("close_journal", "by init"), ("open_filled", "")],
)
def test_successor_takes_no_write_before_the_old_journal_is_closed(
    step: str, made_before: str, shared: StartShared, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from escrowctl.journal.postgres import succession

    server, (run, other) = shared("one", "two")
    name, export = url.rpartition("=")[2], tmp_path / "export"
    new = {"ESCROWCTL_JOURNAL": url.replace(name, f"{name}_2")}
    assert run(*CREATE, "--reference", "A-1").code == 0
    export.write_text(run("journal", "export").out)
    if made_before:
        assert run("journal", "init", "--single-role", environ=new).code == 0
    replacing = ("journal", "init", "--from", str(export), "--single-role", "--yes", "--name", f"{name}_2")
    with monkeypatch.context() as stopping:
        stopping.setattr(succession, step, Mock(side_effect=OSError("stopped here")))
        assert run(*replacing).code != 0

    # At most the old journal is in use, and the same line goes on.
    before = [one(*CREATE, "--reference", "A-1", environ=more).code for one, more in ((run, {}), (other, new))]
    assert before == [17 if step == "open_filled" else 7, 17]
    assert run(*replacing).code == 0
    assert [run(*CREATE, "--reference", "A-1", environ=more).code for more in ({}, new)] == [17, 7]
    assert len(server.writes) == 1
