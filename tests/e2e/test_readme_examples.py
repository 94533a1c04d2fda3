"""Every example in README is run: what it shows is what a person, a shell or a CI job gets."""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest
from conftest import KEY
from wire_server import Behave, Seen, WireServer, answering, by_method, hang_up, http_reply, say_nothing, serving

from e2e.script import SECONDS, Program, find_script

if TYPE_CHECKING:
    from storage.postgres import Server

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PROMPT = "@@ "
ID = "tx_7K2M9QHD"

_NOT_THE_SAME = (
    (r"ESCROWCTL_(PROFILE=\w+|BASE_URL=http://127\.[0-9.:]+) ", ""),
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?Z", "TIME"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"[0-9]+ s ago", "N s ago"),
    (r"within [0-9.]+ s", "within N s"),
    (r"https?://((test\.)?escrow\.example\.com|127\.0\.0\.1:[0-9]+)", "URL"),
    (r"sk_sandbox_([0-9a-f]+|\.\.\.)", "KEY"),
    (r"/[^ ]*/(config\.toml|credentials\.toml)", r"FOLDER/\1"),
    (r"\bj[0-9]+\b", "jN"),
    (r'"pid": [0-9]+', '"pid": N'),
    (r"tx_[0-9A-Z]{8}", ID),
    (r" +", " "),
)


def alike(text: str) -> list[str]:
    """Return lines with what differs between runs replaced."""
    for pattern, word in _NOT_THE_SAME:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.replace("\r", "").splitlines() if line.strip()]


def block(kind: str, word: str) -> str:
    """Return the one block of a kind that has a word in it."""
    found: str
    (found,) = [text for name, text in BLOCKS if name == kind and word in text]
    return found


def steps(console: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each command of a console block with the lines it shows and the answers that are typed."""
    for step in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, *lines = step.splitlines()
        answers = [line.removeprefix("> ") for line in lines if line.startswith("> ")]
        yield command, lines, answers


def play(program: Program, console: str, *, server: WireServer | None = None, folder: Path | None = None) -> None:
    """Type a console block into bash at a terminal, and compare what is shown; `...` matches any lines."""
    environ = {**program.environ, "PS1": PROMPT, "TERM": "dumb", "PATH": f"{find_script().parent}:/usr/bin:/bin"}
    bash = ["--norc", "--noprofile"]
    how = {"encoding": "utf-8", "timeout": SECONDS, "dimensions": (50, 250), "echo": False}
    shell = pexpect.spawn("bash", bash, env=environ, cwd=folder, **how)
    made = ID
    with contextlib.closing(shell):
        shell.expect_exact(PROMPT)
        for command, lines, answers in steps(console):
            typed = command.replace(ID, made)
            if server:
                typed = re.sub(r"https://[a-z.]*escrow\.example\.com", server.base_url, typed)
            shell.sendline(typed)
            shown = ""
            for answer in answers:
                shell.expect_exact("> ")
                shown += f"{shell.before}> {answer}\n"
                shell.sendline(answer.replace(ID, made))
            shell.expect_exact(PROMPT)
            shown += str(shell.before)
            made = next(iter(re.findall(r"tx_[0-9A-Z]{8}", shown)), made)
            compare(shown, lines)


def compare(shown: str, lines: list[str]) -> None:
    wanted, found = alike("\n".join(lines)), alike(shown)
    if "..." not in wanted:
        assert found == wanted
        return
    at = wanted.index("...")
    behind = wanted[at + 1 :]
    assert found[:at] == wanted[:at]
    assert found[len(found) - len(behind) :] == behind


def test_every_readme_example_has_a_test() -> None:
    kinds = [(name, text.splitlines()[0]) for name, text in BLOCKS]

    assert kinds == [
        # The two set-up lines are run by .ci/run, in a clean clone.
        ("sh", "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/escrowctl --sandbox tx create "
         "--amount 100 --currency USD"),
        ("sh", "python3 -m venv .venv && .venv/bin/pip install -q '.[test]' && .venv/bin/pytest -n 3"),
        # Installing for a user needs the tools of that user.
        ("sh", "pipx install .          # or: uv tool install ."),
        ("console", "$ escrowctl --sandbox tx create --amount 100 --currency USD"),
        ("sh", 'printf %s "$KEY" | escrowctl auth login --base-url https://escrow.example.com --mode test '
         "-p acme-test"),
        ("sh", "export ESCROWCTL_BASE_URL=https://escrow.example.com ESCROWCTL_API_KEY"),
        ("console", "$ escrowctl tx create --amount 2500 --currency EUR"),
        ("sh", 'escrowctl journal resolve j197 --applied --id tx_88F2 --reason "support ticket 5512"'),
        ("console", r"$ printf 'amount,currency,reference\n1250,EUR,A-1\n50.50,EUR,A-2\n200,USD,A-3\n' > payouts.csv"),
        ("yaml", "name: pay out"),
    ]  # fmt: skip


def test_the_first_minutes(program: Program) -> None:
    if not any((Path(folder) / "jq").exists() for folder in ("/usr/bin", "/bin")):
        pytest.skip("jq is not installed")
    play(program, block("console", "--sandbox tx create"))


@pytest.mark.slow
def test_a_file_of_rows(program: Program, tmp_path: Path) -> None:
    play(program, block("console", "payouts.csv"), folder=tmp_path)


@pytest.mark.slow
def test_an_unknown_outcome(program: Program) -> None:
    with serving(say_nothing) as server:
        there = program.at(server).with_environ(ESCROWCTL_PROFILE="impatient")
        program.config.mkdir(parents=True, mode=0o700)
        (program.config / "config.toml").write_text(
            f'[profiles.impatient]\nbase_url = "{server.base_url}"\ntimeout = 0.5'
        )
        play(there, block("console", "unknown: the create"), server=server)
        assert len(server.writes) == 1


@pytest.mark.slow
def test_an_unknown_is_settled_as_shown(program: Program) -> None:
    lines = [line.partition("    #")[0] for line in block("sh", "journal resolve").splitlines()]
    assert len(lines) == 3
    record = http_reply("200 OK", b'{"id":"tx_88F2","status":"held","amount":2500,"currency":"EUR"}')

    def look(seen: Seen, connection: socket.socket) -> None:
        is_list = seen.target.endswith("/transactions")
        connection.sendall(http_reply("200 OK", b"[]") if is_list else record)

    replies: list[Behave] = [hang_up, hang_up, hang_up, answering(record.replace(b"tx_88F2", b"tx_88F3"))]

    def write(seen: Seen, connection: socket.socket) -> None:
        replies.pop(0)(seen, connection)

    with serving(by_method(GET=look, POST=write)) as server:
        there = program.at(server)
        for number, line in enumerate(lines, start=1):
            unknown = there.run("tx", "create", "--amount", "2500", "--currency", "EUR", "--reference", f"r{number}")
            assert unknown.code == 12
            typed = line.replace("j197", f"j{number}") + (" --yes" if "--resend" in line else "")
            settled = there.bash(typed)
            assert settled.code == 0, settled.err
        states = [entry["state"] for entry in there.run("journal", "list", "--json").json]
    assert (states, len(server.writes)) == (["done", "not_applied", "done"], 4)


def shell(program: Program, script: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environ = {**program.environ, **variables, "PATH": f"{find_script().parent}:/usr/bin:/bin"}
    return subprocess.run(
        ["bash", "--norc", "-eo", "pipefail", "-c", script],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def here(script: str, server: WireServer) -> str:
    return script.replace("https://escrow.example.com", server.base_url)


@pytest.mark.slow
def test_a_key_comes_through_a_pipe(program: Program) -> None:
    with serving(answering(http_reply("200 OK", b"[]"))) as server:
        done = shell(program, here(block("sh", "auth login"), server), KEY=KEY)

        assert done.returncode == 0, done.stderr
        assert [(seen.target, seen.header("authorization")) for seen in server.seen] == [
            ("/api/v1/webhooks", f"Bearer {KEY}")
        ]


def test_a_job_sets_two_variables(program: Program) -> None:
    reply = b'{"id":"tx_1","amount":2500,"currency":"EUR"}'
    with serving(answering(http_reply("200 OK", reply))) as server:
        done = shell(program, here(block("sh", "export ESCROWCTL_BASE_URL"), server), ESCROWCTL_API_KEY=KEY)

        assert (done.returncode, json.loads(done.stdout)["id"]) == (0, "tx_1")
        assert len(server.writes) == 1


# The CI job: its own environment, no terminal, nothing on stdin.


def job() -> tuple[dict[str, str], str]:
    """Return the variables and the last script of the job file."""
    text = block("yaml", "ESCROWCTL_API_KEY")
    variables = dict(re.findall(r"^      ([A-Z_]+): (.+)$", text, re.MULTILINE))
    script = text.rpartition("- run: |\n")[2]
    return variables, re.sub(r"^ {10}", "", script, flags=re.MULTILINE)


LOST = "hang up"
RELEASED = "ESCROWCTL_STATUS_RELEASED"


class Escrows:
    """A service that counts what it did; `fail`: method -> how it fails once, a status (not done), or `LOST`."""

    def __init__(self) -> None:
        self.created = 0
        self.orders: list[str | None] = []
        """The idempotency key of each create."""
        self.released: list[str] = []
        self.fail: dict[str, str] = {}

    def behave(self, seen: Seen, connection: socket.socket) -> None:
        failure = self.fail.pop(seen.method, "")
        refusal = failure if failure != LOST else ""
        if not refusal:
            self._do(seen)
        if failure == LOST:
            connection.shutdown(socket.SHUT_RDWR)
            return
        found = f"tx_{self.created}" if seen.method == "POST" else seen.target.split("/")[4]
        word = "released" if found in self.released else "held"
        record = {"id": found, "status": word, "amount": 2500, "currency": "EUR"}
        body = {"error": "beneficiary blocked"} if refusal else record
        connection.sendall(http_reply(refusal or "200 OK", json.dumps(body).encode()))

    def _do(self, seen: Seen) -> None:
        if seen.method == "POST":
            self.created += 1
            self.orders.append(seen.header("Idempotency-Key"))
        if seen.method == "PUT":
            self.released.append(seen.target.split("/")[4])


class Job:
    """The job of the README at a live service. Each run has an empty disk, or `disk` if there is no database."""

    def __init__(self, program: Program, server: WireServer, folder: Path, database: str = "") -> None:
        self._program = program
        self._given = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY, "ESCROWCTL_MODE": "live"}
        self._folder, self._database, self._runs = folder, database, 0
        self.disk = folder / "disk"
        made = shell(program, f"escrowctl journal init -q {'--single-role' * bool(database)}", **self._place())
        self.journal_id = made.stdout.strip()

    def run(self, order: str = "order-1", *, lines: int | None = None) -> "subprocess.CompletedProcess[str]":
        """Run the job for an order, or only the first lines of its script."""
        variables, script = job()
        own = {"ESCROWCTL_JOURNAL_ID": self.journal_id, "ORDER": order}
        given = {*own, *self._given, RELEASED, "ESCROWCTL_JOURNAL", "PGPASSWORD"} - {"ESCROWCTL_MODE"}
        assert variables.keys() == given
        script = "\n".join(script.splitlines()[:lines])
        environ = {**self._given, **own, **self._place(), RELEASED: variables[RELEASED], "CI": "true"}
        return shell(self._program, script, **environ)

    def _place(self) -> dict[str, str]:
        if not self._database:
            return {"ESCROWCTL_HOME": str(self.disk)}
        self._runs += 1
        home = str(self._folder / f"runner {self._runs}")
        return {"ESCROWCTL_JOURNAL": self._database, "ESCROWCTL_HOME": home, "HOME": home}


@pytest.fixture
def escrows() -> Escrows:
    return Escrows()


@pytest.fixture
def ci_job(escrows: Escrows, program: Program, tmp_path: Path, postgres: "Server") -> Iterator[Job]:
    with serving(escrows.behave) as server:
        yield Job(program, server, tmp_path, f"{postgres.url}?journal=j{time.monotonic_ns()}")


@pytest.fixture
def disk_job(escrows: Escrows, program: Program, tmp_path: Path) -> Iterator[Job]:
    with serving(escrows.behave) as server:
        yield Job(program, server, tmp_path)


@pytest.mark.slow
def test_the_ci_job_creates_and_releases_once_however_often_it_runs(escrows: Escrows, ci_job: Job) -> None:
    # It ends after the create, after the release, and as a whole.
    done = [ci_job.run(lines=lines) for lines in (2, 3, None, None)]

    assert [one.returncode for one in done] == [0, 0, 0, 0], done[-1].stderr
    done = done[1:]
    assert (escrows.created, escrows.released) == (1, ["tx_1"])
    assert json.loads(done[0].stdout)["id"] == "tx_1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "failure", "codes"),
    [
        ("POST", "422 No", [8, 8]),
        ("POST", "401 No", [4, 0]),
        ("POST", LOST, [12, 12]),
        ("PUT", "422 No", [8, 0]),
        ("PUT", LOST, [12, 12]),
    ],
    ids=["create refused", "key refused", "create unknown", "release refused", "release unknown"],
)
def test_ci_job_that_runs_again_after_a_step_failed_does_nothing_twice(
    method: str, failure: str, codes: list[int], escrows: Escrows, ci_job: Job
) -> None:
    escrows.fail = {method: failure}

    first, again = ci_job.run(), ci_job.run()

    assert [first.returncode, again.returncode] == codes, again.stderr
    assert (escrows.created <= 1, len(escrows.released) <= 1) == (True, True)
    assert ("::error::outcome unknown" in first.stdout) == (codes[0] == 12)
    if codes[0] == 12:
        assert json.loads(first.stderr.splitlines()[-1])["error"]["request"]["method"] == method


@pytest.mark.slow
def test_ci_job_with_an_unknown_order_pays_the_others_once(escrows: Escrows, ci_job: Job) -> None:
    first = ci_job.run("order-1")
    escrows.fail = {"POST": LOST}
    unknown, third = ci_job.run("order-2"), ci_job.run("order-3")
    again = [ci_job.run(order) for order in ("order-2", "order-3")]

    codes = [one.returncode for one in (first, unknown, third, *again)]
    assert codes == [0, 12, 0, 12, 0], third.stderr
    assert (escrows.orders, escrows.released) == (["order-1", "order-2", "order-3"], ["tx_1", "tx_3"])
    assert [json.loads(one.stdout)["verified"] for one in (first, third)] == [True, True]


@pytest.mark.slow
def test_ci_job_on_an_empty_disk_sends_nothing(escrows: Escrows, disk_job: Job, tmp_path: Path) -> None:
    assert disk_job.run().returncode == 0
    disk_job.disk = tmp_path / "empty"

    again = disk_job.run()
    disk_job.journal_id = ""
    without_id = disk_job.run()

    assert [again.returncode, without_id.returncode] == [17, 17]
    assert (escrows.created, escrows.released, disk_job.disk.exists()) == (1, ["tx_1"], False)


@pytest.mark.slow
def test_ci_job_on_an_older_copy_of_its_disk_is_the_case_that_readme_names(
    escrows: Escrows, disk_job: Job, tmp_path: Path
) -> None:
    shutil.copytree(disk_job.disk, tmp_path / "copy")
    assert disk_job.run().returncode == 0
    disk_job.disk = tmp_path / "copy"

    assert disk_job.run().returncode == 0
    assert escrows.created == 2
    section = README.split("## In a CI job")[1].split("## ")[0]
    assert "its journal does not know what was paid since" in section


def test_the_ci_job_with_a_lost_secret_reports_no_success(program: Program) -> None:
    given = {"ESCROWCTL_BASE_URL": "https://escrow.example.com", "ESCROWCTL_API_KEY": "", "CI": "true", "ORDER": "1"}
    done = shell(program, job()[1], **given)

    assert (done.returncode, done.stdout) == (4, "")
