"""What each kind of line imports: start-up is a feature, and modules are what it is made of.

Seconds vary with the machine and are measured by tests/bench/startup.py; the set of modules does not vary.
"""

import pytest
from conftest import Serve
from wire_server import http_reply

from e2e.script import Program

_MODULES = """
import sys
before = set(sys.modules)
from escrowctl.main import main
code = main()
loaded = {name for name, module in sys.modules.items() if module is not None} - before
sys.stderr.write("\\nMODULES " + " ".join(sorted(loaded)))
sys.exit(code)
"""

NEVER = frozenset({"httpx._main", "click", "pygments", "typer.testing", "typer.rich_utils", "unittest", "asyncio"})
HTTP = frozenset({"httpx", "httpcore", "h11", "ssl", "socket", "http", "email", "certifi", "anyio", "idna"})
UNUSED_BY_ONE_READ = (
    *(
        "escrowctl.commands.several",
        "escrowctl.commands.writing",
        "escrowctl.contract.money",
        "escrowctl.contract.paths",
    ),
    *("escrowctl.output.errors", "escrowctl.output.terminal", "escrowctl.output.outline"),
    *("escrowctl.client.trace", "escrowctl.prompt"),
    *("escrowctl.journal", "escrowctl.sandbox", "escrowctl.writes"),
)
UNUSED_BY_A_CREATE = (
    *("escrowctl.commands.several", "escrowctl.contract.paths", "escrowctl.journal.mounts", "escrowctl.sandbox"),
    *("escrowctl.commands.read", "escrowctl.output.errors"),
    *("escrowctl.writes.inspection", "escrowctl.writes.read_back", "escrowctl.writes.resolve"),
    *("getpass", "termios"),
)
MOST_OWN_MODULES = 45
HEAVY = frozenset({"pydantic", "pydantic_core", "rich", "sqlite3", "falcon", "platformdirs", "waitress"})


def imported(program: Program, *words: str, code: int = 0) -> frozenset[str]:
    """Return what a command line imports beyond the bare interpreter; where ESCROWCTL_HOME is not set, platformdirs."""
    ended = program.with_environ(ESCROWCTL_HOME=str(program.config)).python(_MODULES, *words)
    assert ended.code == code, ended.err
    return frozenset(ended.err.rpartition("\nMODULES ")[2].split())


@pytest.fixture
def connected_program(program: Program, serve: Serve) -> Program:
    """The program as a job has it: configured by two variables."""
    reply = http_reply("200 OK", b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}')
    return program.at(serve(lambda _seen, connection: connection.sendall(reply)))


@pytest.mark.parametrize("words", ["--version", "-V", "--json --version", "--version --json -q"])
def test_the_version_imports_nothing_at_all(program: Program, words: str) -> None:
    assert imported(program, *words.split()) == {"escrowctl", "escrowctl.main"}


@pytest.mark.representative("tx create-2", "--help-0", "-0")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("", 0),
        ("--help", 0),
        ("tx", 0),
        ("tx --help", 0),
        ("tx create --help", 0),
        ("help exit-codes", 0),
        ("nonsense", 2),
        ("tx create", 2),
        ("tx get", 2),
        ("tx create --amount 1,000 --currency USD", 2),
        ("--nonsense --json", 2),
    ],
)
def test_help_and_usage_errors_load_neither_http_nor_storage(program: Program, words: str, code: int) -> None:
    assert imported(program, *words.split(), code=code) & (HTTP | HEAVY | NEVER) == frozenset()


def test_help_loads_no_format_of_output(program: Program) -> None:
    assert (
        imported(program, "--help") & {"json", "decimal", "escrowctl.output.view", "escrowctl.contract"} == frozenset()
    )


@pytest.mark.representative("tx get tx_1")
@pytest.mark.parametrize("words", ["tx get tx_1", "tx get tx_1 --json", "tx get tx_1 tx_1 -q"])
def test_a_read_loads_http_and_neither_storage_nor_models(connected_program: Program, words: str) -> None:
    loaded = imported(connected_program, *words.split())
    assert loaded >= {"httpx", "httpcore", "escrowctl.client.transport"}
    assert loaded & (HEAVY | NEVER) == frozenset()


def test_read_of_one_id_loads_only_own_modules_it_uses(connected_program: Program) -> None:
    loaded = imported(connected_program, "tx", "get", "tx_1", "--json")
    own = [name for name in loaded if name.split(".")[0] == "escrowctl"]
    assert "escrowctl.commands.read" in own
    assert [name for name in own if name.startswith(UNUSED_BY_ONE_READ)] == []
    assert len(own) <= MOST_OWN_MODULES


def test_create_loads_no_module_of_other_writes(connected_program: Program) -> None:
    loaded = imported(connected_program, "tx", "create", "--amount", "100", "--currency", "USD")
    assert [name for name in loaded if name.startswith(UNUSED_BY_A_CREATE)] == []


def test_write_loads_the_journal_but_no_models_and_no_sandbox(connected_program: Program) -> None:
    loaded = imported(connected_program, "tx", "create", "--amount", "100", "--currency", "USD")
    assert loaded >= {"httpx", "sqlite3", "escrowctl.journal.sqlite.storage"}
    assert loaded & (HEAVY - {"sqlite3"} | NEVER) == frozenset()
    assert [name for name in loaded if name.startswith("escrowctl.sandbox")] == []


def test_journal_list_loads_no_http(program: Program) -> None:
    loaded = imported(program, "journal", "list")
    assert loaded >= {"sqlite3"}
    assert loaded & (HTTP | HEAVY - {"sqlite3"} | NEVER) == frozenset()


def test_the_sandbox_never_loads_the_command_line_of_httpx(program: Program) -> None:
    loaded = imported(program, "--sandbox", "tx", "create", "--amount", "1", "--currency", "USD")
    assert loaded >= {"httpx", "falcon", "sqlite3"}
    assert loaded & {"httpx._main", "click", "rich"} == frozenset()
