"""What each kind of line imports: start-up is a feature, and modules are what it is made of.

Seconds vary with the machine and are measured by tests/bench/startup.py; the set of modules does not vary.
"""

import pytest
from conftest import Serve
from wire_server import answering, http_reply

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
HEAVY = frozenset({"pydantic", "pydantic_core", "rich", "sqlite3", "platformdirs", "psycopg", "waitress"})
UNUSED_BY_ONE_READ = (
    *("commands.several", "commands.writing", "contract.money", "contract.paths", "client.trace", "prompt"),
    *("output.errors", "output.terminal", "journal", "sandbox", "writes"),
)
UNUSED_BY_A_CREATE = (
    *("commands.several", "commands.read", "contract.paths", "journal.sqlite.mounts", "journal.postgres"),
    *("journal.tables.batches", "journal.tables.check"),
    *("journal_url", "sandbox", "output.errors"),
    *("writes.inspection", "writes.read_back", "writes.resolve"),
)
MOST_OWN_MODULES = 45


def own(loaded: frozenset[str], *within: str) -> list[str]:
    """Return the modules of escrowctl among these, all or those within some."""
    prefixes = tuple(f"escrowctl.{name}" for name in within) or "escrowctl"
    return [name for name in loaded if name.startswith(prefixes)]


def imported(program: Program, *words: str, code: int = 0) -> frozenset[str]:
    """Return what a command line imports beyond the bare interpreter; where ESCROWCTL_HOME is not set, platformdirs."""
    ended = program.with_environ(ESCROWCTL_HOME=str(program.config)).python(_MODULES, *words)
    assert ended.code == code, ended.err
    return frozenset(ended.err.rpartition("\nMODULES ")[2].split())


@pytest.fixture
def connected_program(program: Program, serve: Serve) -> Program:
    """The program as a job has it: configured by two variables."""
    reply = http_reply("200 OK", b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}')
    return program.at(serve(answering(reply)))


@pytest.mark.parametrize("words", ["--version", "--version --json -q"])
def test_the_version_imports_nothing_at_all(program: Program, words: str) -> None:
    assert imported(program, *words.split()) == {"escrowctl", "escrowctl.main"}


@pytest.mark.representative("tx create-2", "--help-0", "-0")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("", 0),
        ("--help", 0),
        ("tx create --help", 0),
        ("help exit-codes", 0),
        ("nonsense", 2),
        ("tx create", 2),
        ("tx create --amount 1,000 --currency USD", 2),
    ],
)
def test_help_and_usage_errors_load_neither_http_nor_storage(program: Program, words: str, code: int) -> None:
    assert imported(program, *words.split(), code=code) & (HTTP | HEAVY | NEVER) == frozenset()


def test_help_loads_no_format_of_output(program: Program) -> None:
    formats = {"json", "decimal", "escrowctl.output.view", "escrowctl.contract"}
    assert imported(program, "--help") & formats == frozenset()


@pytest.mark.representative("tx get tx_1 --json")
@pytest.mark.parametrize("words", ["tx get tx_1", "tx get tx_1 --json", "tx get tx_1 tx_1 -q"])
def test_a_read_loads_http_and_neither_storage_nor_models(connected_program: Program, words: str) -> None:
    loaded = imported(connected_program, *words.split())
    assert loaded >= {"httpx", "httpcore", "escrowctl.client.transport"}
    assert loaded & (HEAVY | NEVER) == frozenset()
    if words == "tx get tx_1 --json":
        assert "escrowctl.commands.read" in loaded
        assert own(loaded, *UNUSED_BY_ONE_READ) == []
        assert len(own(loaded)) <= MOST_OWN_MODULES


def test_create_loads_the_journal_and_no_module_of_other_writes(connected_program: Program) -> None:
    loaded = imported(connected_program, "tx", "create", "--amount", "100", "--currency", "USD")
    assert loaded >= {"httpx", "sqlite3", "escrowctl.journal.sqlite.storage"}
    assert loaded & (HEAVY - {"sqlite3"} | NEVER | {"getpass", "termios"}) == frozenset()
    assert own(loaded, *UNUSED_BY_A_CREATE) == []


def test_journal_list_loads_no_http(program: Program) -> None:
    assert imported(program, "journal", "list") & (HTTP | HEAVY | NEVER) == {"sqlite3"}


def test_the_sandbox_never_loads_the_command_line_of_httpx(program: Program) -> None:
    loaded = imported(program, "--sandbox", "tx", "create", "--amount", "1", "--currency", "USD")
    assert loaded & {"httpx", "escrowctl.sandbox.http", "httpx._main", "click", "rich"} == {
        *("httpx", "escrowctl.sandbox.http")
    }


def test_a_batch_loads_no_models(connected_program: Program) -> None:
    loaded = imported(connected_program, "batch", "list")
    assert loaded & {"pydantic", "pydantic_core", "rich", "psycopg", "waitress"} == frozenset()
