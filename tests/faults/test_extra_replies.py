"""One reply too many on an open connection: no row is applied twice, and none is done that was not applied."""

import contextlib
import itertools
import json
import random
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import KEY, Result, Run
from e2e.script import Program, clean_environment
from wire_server import serving

from faults.extra_replies import AMOUNT, ExtraReply, ExtraReplyService, SharingProxy
from faults.kills import code_of
from faults.seeds import draw_seed

ROWS = 16
PROFILE = """default_profile = "a"
[profiles.a]
base_url = "{url}"
api_key_file = "a.key"
mode = "live"
status.released = ["released"]
timeout = 5
"""
STATUSES = (201, 400, 401, 403, 408, 429, 503)


class Violation(StrEnum):
    """What must never happen to a row."""

    APPLIED_TWICE = "applied twice"
    DONE_FALSELY = "done, but not applied"
    REFUSED_FALSELY = "refused or not sent, but applied"
    OTHER_ID = "has the id of another row"


class Case(NamedTuple):
    """One file of rows, and what the service does: seconds are given as milliseconds."""

    command: str
    concurrency: int
    status: int
    delay: int | None
    latency: int
    service: str = ""
    """The name of a flag of ExtraReplyService, `proxied`, or nothing."""

    def __str__(self) -> str:
        delay = "next" if self.delay is None else f"{self.delay}ms"
        words = (self.command, self.concurrency, self.status, delay, f"{self.latency}ms", self.service)
        return "-".join(str(word) for word in words if word != "")


def run_case(case: Case, folder: Path, config: Path, run: Callable[..., Result]) -> set[Violation]:
    """Send a file of rows, take the documented steps after it, and return what was violated."""
    chance = random.Random(draw_seed())
    names = [f"A-{number}" if case.command == "create" else f"tx_{number}" for number in range(ROWS)]
    service = ExtraReplyService(
        ExtraReply(case.status, None if case.delay is None else case.delay / 1000),
        latency=case.latency / 1000,
        # The first ones always: a late extra reply comes while others are still to be written.
        followed=frozenset({1, 2, 3, *chance.sample(range(4, 2 * ROWS), ROWS - 3)}),
        refused=names[-1],
        ignores_close=case.service == "ignores_close",
        names_request=case.service == "proxied",
        reads_have_ids=case.service != "reads_without_ids",
    )
    columns = "reference,body.ref" if case.command == "create" else "id"
    cells = [",".join([name] * len(columns.split(","))) for name in names]
    rows = folder / "rows.csv"
    rows.write_text("\n".join([f"{columns},amount,currency", *(f"{cell},{AMOUNT},EUR" for cell in cells), ""]))
    options = ("--yes", "--json", "--concurrency", str(case.concurrency))
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving(service.behave))
        proxy = SharingProxy(server.port)
        if case.service == "proxied":
            server = stack.enter_context(serving(proxy.behave))
        config.mkdir(mode=0o700, parents=True, exist_ok=True)
        (config / "config.toml").write_text(PROFILE.format(url=server.base_url))
        (config / "a.key").write_text(KEY)
        (config / "a.key").chmod(0o600)
        found: set[Violation] = set()

        def run_batch(*words: str) -> None:
            result = run("batch", *words)
            proxy.close_idle()
            print(words[0], result.code, result.err[-300:])
            found.update(compare(service, run, folder))

        run_batch(case.command, str(rows), *options)
        run_batch("resume", "b1", *options)
        rejects = run("batch", "rejects", "b1").out
        if rejects.count("\n") > 1:
            (folder / "rejects.csv").write_text(rejects)
            run_batch(case.command, str(folder / "rejects.csv"), *options)
    print(f"applied {sum(service.applied.values())}, extra replies {service.sent_extra}")
    assert service.writes_after_extra, "no write followed an extra reply: nothing is proved"
    return found


def compare(service: ExtraReplyService, run: Callable[..., Result], folder: Path) -> set[Violation]:
    """Return how the latest result of each row differs from what the service applied."""
    results = {}
    batches = sorted((batch["batch"] for batch in run("batch", "list", "--json").json), key=lambda name: int(name[1:]))
    for batch in batches:
        path = folder / "results.jsonl"
        assert run("batch", "show", batch, "--results", str(path)).code in (0, 12, 15, 16)
        for result in map(json.loads, path.read_text().splitlines()):
            row = result["row"]
            results[row.get("reference") or row["id"]] = result
        path.unlink()
    found = {Violation.APPLIED_TWICE for count in service.applied.values() if count > 1}
    for name, result in results.items():
        if result["outcome"] == "done" and not service.applied[name]:
            found.add(Violation.DONE_FALSELY)
        if result["outcome"] == "done" and result["id"] not in service.ids[name] | {name}:
            found.add(Violation.OTHER_ID)
        if result["outcome"] in ("refused", "not_sent") and service.applied[name]:
            found.add(Violation.REFUSED_FALSELY)
    return found


CASES = [
    *(Case(*drawn) for drawn in itertools.product(("create", "release"), (1, 8), STATUSES, (0, 5, 15, None), (8, 30))),
    *(Case("create", 8, status, 5, 8, "ignores_close") for status in STATUSES),
    *(Case("create", 8, status, 5, 8, "proxied") for status in STATUSES),
    *(Case("release", concurrency, 201, None, 8, "reads_without_ids") for concurrency in (1, 8)),
]


@pytest.mark.representative(
    "create-1-401-next-8ms",
    "create-1-400-0ms-8ms",
    "create-8-201-5ms-8ms",
    "release-1-201-next-8ms-reads_without_ids",
    "create-8-201-5ms-8ms-ignores_close",
    "create-8-401-5ms-8ms-proxied",
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_extra_reply_never_counts_as_the_answer_to_a_row(case: Case, tmp_path: Path, run: Run, home: Path) -> None:
    assert run_case(case, tmp_path, home, run) == set()


@pytest.mark.slow
@pytest.mark.usefixtures("time_limit")
def test_harness_notices_writes_that_share_a_connection(tmp_path: Path) -> None:
    program = Program(clean_environment(tmp_path / "home")).with_environ(BROKEN_MARK=str(tmp_path / "broken"))
    code = code_of("writes_share_a_connection")
    case = Case("create", 1, 401, None, 8)

    found = run_case(case, tmp_path, program.config, lambda *words: program.python(code, *words))

    assert (tmp_path / "broken").exists()
    assert Violation.APPLIED_TWICE in found
