"""Creates whose connection to a shared journal is cut at a statement, before or after the server carries it out."""

import itertools
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli.replies import holding
from conftest import Result, Run
from internals import FIND_RECORD
from storage.postgres import Server
from wire_server import Seen, WireServer

from faults.cutting_proxy import AFTER, BEFORE, CuttingProxy
from faults.test_shared_kills import Machines

SHORT, LONG = 16, 200
SAME, OTHER = 0, 1
"""The machine that repeats a create: the one that was cut, or the other one."""

INTENT, OUTCOME = 1, 2
"""Which COMMIT of a create: the first one is for its locks."""


class Cuts(Machines):
    """Machines whose journal is behind a proxy. The service notes which requests have a durable intent."""

    def __init__(self, server: Server, run: Run, folder: Path) -> None:
        self._answer = holding()
        super().__init__(server, WireServer(self._note_and_answer), folder, 0)
        self.proxy = CuttingProxy(server.port)
        self.url = self.url.replace(str(server.port), str(self.proxy.listener.getsockname()[1]))
        self._run, self._numbers, self._intents = run, itertools.count(1000), list[bool]()
        self.ends, self.cut = Counter[tuple[int, int]](), Counter[str]()
        # From now on, both machines know a head of this journal.
        self.judge({}, OTHER)

    def close(self) -> None:
        self.service.close()
        self.proxy.close()
        print(f"cut {dict(self.cut)}, exits of a create and of its repetition {dict(self.ends)}")

    def create(self, machine: int, number: int, cuts: dict[int, str]) -> Result:
        """Create the escrow of a number: no other has its amount, its reference or its key."""
        self.proxy.begin(cuts)
        words = ("--amount", f"{number}", "--reference", f"order-{number}", "--idempotency-key", f"key-{number}")
        result = self._run("tx", "create", "--currency", "USD", *words, "--json", environ=self.environ(machine))
        self.service.drain()
        return result

    def judge(self, cuts: dict[int, str], repeats: int) -> list[bytes]:
        """Cut the connections of one create, and repeat it without cuts. Return the statements of the first."""
        # Then its head is the newest: the same statements follow each time.
        assert self.create(repeats, next(self._numbers), {}).code == 0
        number, before = next(self._numbers), len(self._intents)
        first = self.create(SAME, number, cuts)
        statements, cut = self.proxy.statements, self.proxy.cut
        self.cut.update("COMMIT" if one == b"COMMIT" else "other" for one in cut)
        arrived = self._intents[before:]
        query = "SELECT state FROM main.entries WHERE reference = %s"
        state = [one for (one,) in self.execute(query, f"order-{number}")]
        where = (cuts, cut, first, state, arrived)
        assert bool(cut) == bool(cuts), where
        assert all(arrived), ("sent without an intent", where)
        assert (first.code, len(arrived)) in ((0, 1), (12, 1), (17, 0)), where
        assert first.code != 17 or first.error["outcome"] == "not_sent", where
        assert state == ["done"] or first.code != 0, ("reported as done", where)
        assert state != ["done"] or arrived, ("recorded as done", where)
        # In place of the wait for the end of a lease that was not given back.
        self.execute("UPDATE main.senders SET expires_at = clock_timestamp() - interval '1 day'")
        again = self.create(repeats, number, {})
        self.ends[first.code, again.code] += 1
        total = len(self._intents) - before
        assert total <= 1, ("sent twice", where, again)
        assert total == 1, ("never sent", where, again)
        assert again.code == (12 if arrived and state != ["done"] else 0), (where, again)
        return statements

    def _note_and_answer(self, seen: Seen, connection: socket.socket) -> None:
        query = "SELECT entry FROM main.records WHERE kind = 'intent' AND facts::json ->> 'idempotency_key' = %s"
        self._intents.append(bool(self.execute(query, seen.header("Idempotency-Key") or "")))
        self._answer(seen, connection)


@pytest.fixture
def cuts(postgres: Server, run: Run, tmp_path: Path) -> Iterator[Cuts]:
    cuts = Cuts(postgres, run, tmp_path)
    yield cuts
    cuts.close()


def commits_of(statements: list[bytes]) -> list[int]:
    return [number for number, one in enumerate(statements, 1) if one == b"COMMIT"]


@pytest.mark.parametrize(
    "count", [pytest.param(SHORT, marks=pytest.mark.slow), pytest.param(LONG, marks=pytest.mark.long)]
)
def test_create_is_sent_once_whatever_statement_is_cut(cuts: Cuts, count: int) -> None:
    statements, draw = cuts.judge({}, OTHER), cuts.chance
    single = [(number + 1, moment) for number in range(len(statements)) for moment in (BEFORE, AFTER)]
    # Each statement once, the commits first; then one or two connections of a create.
    single.sort(key=lambda one: (statements[one[0] - 1] != b"COMMIT", draw.random()))
    for one in single[:count]:
        cuts.judge(dict([one]), OTHER)
    for _ in range(len(single), count):
        # A create has up to two statements fewer on a machine whose head is the newest.
        first = draw.randrange(1, len(statements) - 2)
        drawn = {number: draw.choice((BEFORE, AFTER)) for number in (first, first + draw.randrange(9))}
        cuts.judge(drawn, draw.choice((SAME, OTHER)))

    cuts.proxy.begin({})
    assert cuts.end(cuts.run("journal", "verify"))[0] == 0
    # Two cuts can leave an outcome unknown; one cannot.
    assert {0, 17} <= {code for code, _ in cuts.ends} <= ({0, 17} if count == SHORT else {0, 12, 17})
    assert cuts.cut["COMMIT"] >= 2 * len(commits_of(statements))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_stored", "commit", "moment", "noticed"),
    [(False, INTENT, AFTER, "never sent"), (True, OUTCOME, BEFORE, "reported as done")],
)
@pytest.mark.usefixtures("time_limit")
def test_cuts_notice_a_wrong_answer(
    cuts: Cuts, monkeypatch: pytest.MonkeyPatch, reached: Callable[[], None], *,
    is_stored: bool, commit: int, moment: str, noticed: str,
) -> None:  # fmt: skip
    def find_record(*_: object) -> bool:
        reached()
        return is_stored

    number = commits_of(cuts.judge({}, OTHER))[commit]
    monkeypatch.setattr(FIND_RECORD, find_record)
    with pytest.raises(AssertionError, match=noticed):
        cuts.judge({number: moment}, OTHER)
