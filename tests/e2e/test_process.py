"""What only a process has: terminals, pipes, signals, full disks, and what it imports."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest
from conftest import KEY
from wire_server import Behave, Seen, WireServer, by_method, http_reply, say_nothing

HELD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'
SCRIPT = str(Path(sys.executable).with_name("escrowctl"))
CREATE = ("tx", "create", "--amount", "100", "--currency", "USD")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A clean environment with a home whose name has a space and a quote."""
    home = tmp_path / "a home's folder"
    return {"PATH": f"{Path(SCRIPT).parent}:{os.defpath}", "HOME": str(home), "ESCROWCTL_HOME": str(home / "escrowctl")}


@pytest.fixture
def start(environ: dict[str, str]) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start the installed script; whatever still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def begin(*words: str, server: WireServer | None = None, **more: str) -> "subprocess.Popen[str]":
        around = environ | more
        if server is not None:
            around = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY} | around
        running.append(
            subprocess.Popen(
                [SCRIPT, *words],
                env=around,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def states(environ: dict[str, str]) -> list[str]:
    listing = subprocess.run(
        [SCRIPT, "journal", "list", "--json"], env=environ, capture_output=True, text=True, check=True
    )
    return [entry["state"] for entry in json.loads(listing.stdout)]


def await_true(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


def stop(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    process.send_signal(number)


# Terminals


def test_the_first_minutes_at_a_terminal(environ: dict[str, str]) -> None:
    def at_terminal(*words: str) -> "pexpect.spawn[str]":
        around = {**environ, "TERM": "xterm", "NO_COLOR": "1"}
        return pexpect.spawn(SCRIPT, list(words), env=around, encoding="utf-8", timeout=30, dimensions=(40, 100))

    create = at_terminal("--sandbox", *CREATE)
    create.expect(r"sandbox: built in, no real money")
    create.expect(r"id +(tx_[0-9A-Z]{8})\r\n")
    made = create.match.group(1)
    create.expect(r"status +held\r\n.*amount +100\r\n.*currency +USD\r\n")
    create.expect_exact(f"next: escrowctl --sandbox tx release {made}")
    create.expect(pexpect.EOF)

    release = at_terminal("--sandbox", "tx", "release", made)
    release.expect_exact(f"id {made}   amount 100 USD   status held")
    release.expect_exact(f"A release cannot be undone. Type the id to release 100 USD: {made}")
    release.sendline(made)
    release.expect_exact(f"{made}   held -> released   verified by reading it back")
    release.expect(pexpect.EOF)
    release.close()

    again = at_terminal("--sandbox", "tx", "release", made, "--yes")
    again.expect(rf"error:.* {made} was already released from here, \d+ s ago \(journal j2\). Nothing was\s+sent.")
    again.expect(pexpect.EOF)
    again.close()
    assert (release.exitstatus, again.exitstatus) == (0, 7)


def test_an_id_in_a_shell_variable(environ: dict[str, str]) -> None:
    script = (
        'id=$(escrowctl --sandbox tx create --amount 100 --currency USD -q) && escrowctl --sandbox tx get "$id" --json'
    )

    done = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=True)

    assert json.loads(done.stdout)["status"] == "held"


def test_a_create_that_times_out_and_the_same_line_again(
    serve: Callable[[Behave], WireServer], start: Callable[..., "subprocess.Popen[str]"]
) -> None:
    server = serve(say_nothing)
    line = ("tx", "create", "--amount", "2500", "--currency", "EUR", "--reason", "order 8841", "--timeout", "1")

    first, second = finish(start(*line, server=server)), finish(start(*line, server=server))

    assert (first[0], first[1]) == (12, "")
    assert first[2].startswith("unknown: the create was sent, and no answer came within 1 s. The escrow may exist, or")
    assert f'POST {server.base_url}/api/v1/transactions  {{"amount":2500,"currency":"EUR"}}' in first[2]
    assert 'entry   j1  "order 8841"' in first[2]
    assert (second[0], second[1]) == (12, "")
    assert "error: an equal create (2500 EUR) is unknown since" in second[2]
    assert len(server.writes) == 1


@pytest.mark.parametrize("columns", ["20", "80", "200"])
def test_a_pipe_gets_plain_text_whatever_the_width(
    columns: str, start: Callable[..., "subprocess.Popen[str]"], serve: Callable[[Behave], WireServer]
) -> None:
    long = b'{"id":"tx_%s","status":"held"}' % (b"x" * 100)
    server = serve(lambda _seen, connection: connection.sendall(http_reply("200 OK", long)))

    code, out, err = finish(start("tx", "get", "tx_1", server=server, COLUMNS=columns))

    assert (code, err) == (0, "")
    assert out == f"id\ttx_{'x' * 100}\nstatus\theld\n"


# Pipes and streams


@pytest.mark.parametrize(
    "line", ["escrowctl --help", "escrowctl --sandbox journal list", "escrowctl help exit-codes", "escrowctl --version"]
)
def test_a_closed_pipe_makes_no_noise(line: str, environ: dict[str, str]) -> None:
    script = f'({line}; echo "rc $?" >&2) | true'

    done = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=False)

    assert done.stderr == "rc 0\n"


def test_a_full_disk_behind_stdout_after_a_create(environ: dict[str, str]) -> None:
    script = 'escrowctl --sandbox tx create --amount 100 --currency USD --json > /dev/full; echo "rc $?"'

    done = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=False)

    assert done.stdout == "rc 12\n"
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert error["code"] == "result_not_printed"
    assert error["message"].startswith("created tx_")


def test_text_that_the_terminal_cannot_encode_is_shown_by_its_codes(
    start: Callable[..., "subprocess.Popen[str]"], serve: Callable[[Behave], WireServer]
) -> None:
    record = '{"id":"tx_1","memo":"\u00fc\u4e2d\u001b[31m"}'.encode()
    server = serve(
        lambda _seen, connection: connection.sendall(http_reply("200 OK", record.replace(b"\x1b", b"\\u001b")))
    )

    code, out, err = finish(start("tx", "get", "tx_1", server=server, PYTHONIOENCODING="ascii"))

    assert (code, err) == (0, "")
    assert out == "id\ttx_1\nmemo\t\\xfc\\u4e2d\\u{1b}[31m\n"


def test_a_home_that_cannot_be_written_sends_nothing(
    start: Callable[..., "subprocess.Popen[str]"], serve: Callable[[Behave], WireServer], tmp_path: Path
) -> None:
    server = serve(say_nothing)
    blocked = tmp_path / "a file"
    blocked.write_text("")

    code, out, err = finish(start(*CREATE, server=server, ESCROWCTL_HOME=str(blocked / "home")))

    assert (code, out, server.seen) == (17, "", [])
    assert "Nothing was sent." in err


@pytest.mark.parametrize("mask", ["000", "077", "022"])
def test_every_file_is_private_under_any_umask(mask: str, environ: dict[str, str]) -> None:
    script = f"umask {mask}; escrowctl --sandbox tx create --amount 100 --currency USD -q"

    subprocess.run(["bash", "-c", script], env=environ, capture_output=True, check=True)

    home = Path(environ["ESCROWCTL_HOME"])
    found = {path: path.stat().st_mode & 0o777 for path in (home, *home.rglob("*"))}
    assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in found.items() if path.is_file()} == {0o600}


# Signals


@pytest.fixture
def deaf() -> Iterator[str]:
    """The URL of a TLS port that accepts and never shakes hands: no byte of a request can leave."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_before_any_byte_left_leaves_the_write_not_sent(
    number: signal.Signals, code: int, deaf: str, start: Callable[..., "subprocess.Popen[str]"], environ: dict[str, str]
) -> None:
    journal = Path(environ["ESCROWCTL_HOME"]) / "state" / "journal.db"
    process = start(*CREATE, ESCROWCTL_BASE_URL=deaf, ESCROWCTL_API_KEY=KEY)
    await_true(lambda: journal.exists() and journal.stat().st_size > 20_000 and _has_entry(journal))
    time.sleep(0.2)  # the intent is there; the handshake now waits for an answer

    stop(process, number)

    ended, out, err = finish(process)
    assert (ended, out) == (code, "")
    assert "No write was left unknown." in err
    assert states(environ) == ["not_sent"]


def _has_entry(journal: Path) -> bool:
    import sqlite3

    database = sqlite3.connect(journal)
    try:
        return bool(database.execute("SELECT count(*) FROM entries").fetchone()[0])
    except sqlite3.Error:
        return False
    finally:
        database.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_bytes_left_ends_as_unknown(
    number: signal.Signals,
    serve: Callable[[Behave], WireServer],
    start: Callable[..., "subprocess.Popen[str]"],
    environ: dict[str, str],
) -> None:
    server = serve(say_nothing)
    process = start(*CREATE, server=server)
    await_true(lambda: server.writes)

    stop(process, number)

    code, out, err = finish(process)
    assert (code, out) == (12, "")
    assert "it was interrupted before an answer came" in err
    assert states(environ) == ["unknown"]


def test_a_signal_while_a_done_release_is_read_back_says_the_result_first(
    serve: Callable[[Behave], WireServer], start: Callable[..., "subprocess.Popen[str]"], environ: dict[str, str]
) -> None:
    reads: list[Seen] = []

    def get(seen: Seen, connection: socket.socket) -> None:
        reads.append(seen)
        if len(reads) == 1:
            connection.sendall(http_reply("200 OK", HELD))

    server = serve(by_method(GET=get, PUT=lambda _seen, connection: connection.sendall(http_reply("204 No Content"))))
    process = start("tx", "release", "tx_1", "--yes", "--json", server=server)
    await_true(lambda: len(reads) == 2)

    stop(process, signal.SIGINT)

    code, out, _err = finish(process)
    assert code == 130
    assert (json.loads(out)["http_status"], json.loads(out)["verified"]) == (204, None)
    assert states(environ) == ["done"]


def test_a_signal_during_a_read_is_just_the_end(
    serve: Callable[[Behave], WireServer], start: Callable[..., "subprocess.Popen[str]"]
) -> None:
    server = serve(say_nothing)
    process = start("tx", "get", "tx_1", server=server)
    await_true(lambda: server.seen)

    stop(process, signal.SIGINT)

    assert finish(process)[:2] == (130, "")


# Several processes


def test_eight_at_once_release_an_escrow_once(
    serve: Callable[[Behave], WireServer], start: Callable[..., "subprocess.Popen[str]"]
) -> None:
    processes: list[subprocess.Popen[str]] = []

    def put(_seen: Seen, connection: socket.socket) -> None:
        await_true(lambda: len(processes) == 8)
        connection.sendall(http_reply("204 No Content"))

    def get(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(http_reply("200 OK", HELD))

    server = serve(by_method(GET=get, PUT=put))
    processes += [start("tx", "release", "tx_1", "--yes", "-q", server=server) for _ in range(8)]

    codes = sorted(finish(process)[0] for process in processes)

    assert codes == [0, 7, 7, 7, 7, 7, 7, 7]
    assert len(server.writes) == 1


def test_an_equal_create_waits_for_the_one_in_flight_and_then_knows_it_is_unknown(
    serve: Callable[[Behave], WireServer], start: Callable[..., "subprocess.Popen[str]"]
) -> None:
    server = serve(say_nothing)
    first = start(*CREATE, "--timeout", "3", server=server)
    await_true(lambda: server.writes)
    second = start(*CREATE, "--timeout", "3", server=server)

    assert (finish(first)[0], finish(second)[0]) == (12, 12)
    assert len(server.writes) == 1


# Defects


def test_a_defect_is_one_sentence_and_a_traceback_only_under_debug(environ: dict[str, str]) -> None:
    broken = (
        "import sys, escrowctl.commands.tx as tx\n"
        "def defect(*_): raise ValueError('inside')\n"
        "tx.parse_amount = defect\n"
        "from escrowctl.main import main\n"
        "sys.exit(main())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", broken, "--sandbox", *CREATE, *more],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        for more in ((), ("--debug",))
    ]

    assert [run.returncode for run in runs] == [1, 1]
    assert runs[0].stderr.splitlines()[0] == "error: this is a defect in escrowctl (ValueError)."
    assert "Traceback" not in runs[0].stderr
    assert "Traceback" in runs[1].stderr


# Start-up


LOADED = "import sys; from escrowctl.main import main; code = main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
HTTP = frozenset({"httpx", "httpcore", "ssl", "h11"})
HEAVY = frozenset({"pydantic", "rich", "sqlite3", "falcon", "click", "tomllib", "httpx._main", "urllib.request"})


def loaded(environ: dict[str, str], *words: str, **more: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], env=environ | more, capture_output=True, text=True, check=True
    )
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split()) - set(bare.stdout.split())


@pytest.mark.parametrize("words", [("--version",), ("--json", "--version"), ("-V",)])
def test_the_version_is_printed_with_nothing_imported(words: tuple[str, ...], environ: dict[str, str]) -> None:
    assert loaded(environ, *words) == {"escrowctl", "escrowctl.main"}


@pytest.mark.parametrize("words", [("--help",), ("tx", "--help"), ("tx", "create")])
def test_help_and_usage_errors_load_nothing_heavy(words: tuple[str, ...], environ: dict[str, str]) -> None:
    assert loaded(environ, *words) & (HTTP | HEAVY - {"tomllib"}) == set()


def test_a_read_loads_http_and_nothing_else_that_is_heavy(
    environ: dict[str, str], serve: Callable[[Behave], WireServer]
) -> None:
    server = serve(lambda _seen, connection: connection.sendall(http_reply("200 OK", HELD)))
    found = loaded(environ, "tx", "get", "tx_1", "--json", ESCROWCTL_BASE_URL=server.base_url, ESCROWCTL_API_KEY=KEY)

    assert found >= HTTP
    assert found & {"pydantic", "rich", "falcon", "click"} == set()
    # A None stands where httpx would import its own command line.
    assert "httpx._main" in found


def test_the_script_under_test_is_installed() -> None:
    assert shutil.which(SCRIPT), f"{SCRIPT} is missing: install the package beside this interpreter"
