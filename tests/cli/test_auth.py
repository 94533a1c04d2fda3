"""`auth status`, `logout` and `switch`: keys are listed, checked and removed, and never shown."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import KEY, Run, Serve
from wire_server import WireServer

from cli.conftest import names_of_files_with
from cli.replies import OTHER_KEY, takes

SERVICES = """\
default_profile = "a"
[profiles.a]
base_url = "{a}"
mode = "test"
[profiles.b]
base_url = "{b}"
mode = "live"
[profiles.file]
base_url = "{b}"
mode = "test"
api_key_file = "file.key"
[profiles.loose]
base_url = "{b}"
mode = "test"
api_key_file = "loose.key"
[profiles.moved]
base_url = "{a}"
[profiles.none]
base_url = "https://none.example.com"
"""


@pytest.fixture
def accounts(serve: Serve, write_config: Callable[[str], Path], home: Path) -> tuple[WireServer, WireServer]:
    """Two services, A taking KEY and B taking OTHER_KEY, and profiles in every state."""
    a, b = serve(takes(KEY)), serve(takes(OTHER_KEY))
    write_config(SERVICES.format(a=a.base_url, b=b.base_url))
    stored = {"a": (a, KEY), "b": (b, KEY), "moved": (b, OTHER_KEY), "orphan": (b, OTHER_KEY)}
    credentials = "".join(f'[{name}]\norigin = "{at.base_url}"\nkey = "{key}"\n' for name, (at, key) in stored.items())
    for name, text in (("credentials.toml", credentials), ("file.key", OTHER_KEY), ("loose.key", OTHER_KEY)):
        (home / name).write_text(text)
        (home / name).chmod(0o604 if name == "loose.key" else 0o600)
    return a, b


def test_status_lists_each_account_and_where_its_key_is(
    run: Run, accounts: tuple[WireServer, WireServer], home: Path
) -> None:
    a, b = (server.base_url for server in accounts)

    result = run("auth", "status")

    assert (result.code, result.err) == (0, "")
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [[*row[:4], row[4].partition(" ")[0]] for row in rows] == [
        ["a", "*", a, "test", "...cdef"],
        ["b", "", b, "live", "...cdef"],
        ["file", "", b, "test", "...3210"],
        ["loose", "", b, "test", "-"],
        ["moved", "", a, "test", "-"],
        ["none", "", "https://none.example.com", "live", "-"],
        ["orphan", "", b, "-", str(home / "credentials.toml")],
    ]
    given = run("auth", "status", environ={"ESCROWCTL_BASE_URL": a, "ESCROWCTL_API_KEY": KEY})
    assert given.out.split("\t")[:4] == ["(environment)", "", a, "test"]
    assert [len(server.seen) for server in accounts] == [0, 0]


def test_status_checks_each_service_on_request(run: Run, accounts: tuple[WireServer, WireServer]) -> None:
    result = run("auth", "status", "--check", "--json")

    assert (result.code, result.error["code"]) == (16, "check_failed")
    assert "b, loose, moved, none, orphan" in result.error["message"]
    asked = [[(seen.target, seen.header("Authorization")) for seen in server.seen] for server in accounts]
    assert asked == [
        [("/api/v1/webhooks", f"Bearer {KEY}")],
        [("/api/v1/webhooks", f"Bearer {KEY}"), ("/api/v1/webhooks", f"Bearer {OTHER_KEY}")],
    ]
    one = run("-p", "file", "auth", "status", "--check")
    assert (one.code, one.out.count("\n")) == (0, 1)


def test_status_warns_of_stored_keys_that_others_can_read(
    run: Run, accounts: tuple[WireServer, WireServer], home: Path
) -> None:
    (home / "credentials.toml").chmod(0o640)

    result = run("auth", "status")

    assert (result.code, "0640" in result.out.splitlines()[0], "warning:" in result.err) == (0, True, True)
    assert [run("-p", "a", *words).code for words in (("user", "get", "u_1"), ("auth", "logout"))] == [2, 2]
    assert [len(server.seen) for server in accounts] == [0, 0]


@pytest.mark.usefixtures("accounts")
def test_logout_removes_one_key_and_lists_the_rest(run: Run, home: Path) -> None:
    gone = run("auth", "logout", "-p", "b", environ={"ESCROWCTL_API_KEY": KEY})
    again = run("auth", "logout", "-p", "b")
    file = run("auth", "logout", "-p", "file")
    unknown = run("auth", "logout", "-p", "nowhere")

    assert (gone.code, gone.out) == (0, "")
    assert "ESCROWCTL_API_KEY" in gone.err
    assert (again.code, file.code, "file.key" in file.err) == (0, 0, True)
    assert (unknown.code, unknown.out) == (2, "")
    left = (home / "credentials.toml").read_text()
    assert [name for name in ("[a]", "[b]", "[moved]", "[orphan]") if name in left] == ["[a]", "[moved]", "[orphan]"]
    assert run("auth", "logout", "-p", "orphan").code == 0


@pytest.mark.usefixtures("accounts")
def test_logout_of_all_leaves_no_key_behind(run: Run, home: Path) -> None:
    codes = [run("auth", "logout", *words).code for words in (("--all", "-p", "b"), ("--all",), ("--all",))]

    assert codes == [2, 0, 0]
    assert "sk_test" not in (home / "credentials.toml").read_text()
    assert run("-p", "b", "tx", "get", "tx_1").code == 4


def test_switch_sets_the_default_profile(run: Run, accounts: tuple[WireServer, WireServer], home: Path) -> None:
    b = accounts[1].base_url

    switched = run("auth", "switch", "b")
    unknown = run("auth", "switch", "nowhere")
    unnamed = run("auth", "switch")

    assert (switched.code, switched.out) == (0, "")
    assert (home / "config.toml").read_text() == SERVICES.format(a=accounts[0].base_url, b=b).replace(
        'default_profile = "a"', 'default_profile = "b"'
    )
    assert (unknown.code, unnamed.code) == (2, 2)


def test_switch_lists_profiles_in_the_order_of_the_file(run: Run, write_config: Callable[[str], Path]) -> None:
    write_config("".join(f'[profiles.{name}]\nbase_url = "https://{name}.example.com"\n' for name in "cab"))

    switched = run("auth", "switch", stdin="b\n", terminal=True)

    assert [line.split()[0] for line in switched.err.splitlines()[:3]] == ["c", "a", "b"]
    assert (switched.code, run("config", "get", "default_profile").out) == (0, "b\n")


@pytest.mark.usefixtures("accounts")
def test_no_output_has_the_key(run: Run, home: Path) -> None:
    results = [
        run(*line, "--debug", stdin=KEY)
        for line in (
            ("auth", "status", "--check", "--json"),
            ("-p", "a", "auth", "login"),
            ("auth", "switch", "b"),
            ("auth", "logout"),
        )
    ]

    said = "".join(result.out + result.err for result in results)
    assert [said.count(key) for key in (KEY, OTHER_KEY)] == [0, 0]
    assert names_of_files_with(KEY, home) == ["credentials.toml"]
