"""Which folders and files are used, created and refused: escrowctl does not change the mode of existing files."""

import os
import pwd
import shlex
import stat
from pathlib import Path

import pytest
from conftest import KEY, Run, ServiceAndRun

from cli.conftest import Profile
from cli.replies import CREATE, HELD, json_reply
from escrowctl.config.folders import Folders
from escrowctl.errors import EscrowctlError
from escrowctl.files import make_private_folder

GET = ("tx", "get", "tx_1")
JOURNAL_FILES = ("journal.db", "journal.db-journal", "journal.lock", "journal.head")
NOBODY = 65_534
TERMINAL = Path(os.ttyname(os.openpty()[1]))
"""A device of this process: if it is changed by mistake, nothing else is affected."""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file belong to another user than the one who runs escrowctl."""
    if os.geteuid() == 0:
        os.chown(path, NOBODY, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY)


def put(kind: str, path: Path) -> None:
    """Put something that is no regular file at a path."""
    match kind:
        case "link":
            path.with_name("target").touch(0o640)
            path.symlink_to(path.with_name("target"))
        case "device link":
            path.symlink_to(TERMINAL)
        case "pipe":
            os.mkfifo(path)
        case _:
            path.mkdir()


KINDS = ("link", "device link", "pipe", "folder")


@pytest.fixture
def state(home: Path) -> Path:
    folder = home / "state"
    folder.mkdir(mode=0o700, parents=True)
    return folder


def test_folder_created_first_by_another_process_keeps_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, mkdir = tmp_path / "team", os.mkdir

    def slower(path: Path, *words: int, **more: int) -> None:
        if Path(path) == shared:
            mkdir(path)
            shared.chmod(0o2755)
        mkdir(path, *words, **more)

    monkeypatch.setattr(os, "mkdir", slower)

    make_private_folder(shared / "escrowctl")

    assert (mode(shared), mode(shared / "escrowctl") & 0o777) == (0o2755, 0o700)


def test_linked_state_folder_keeps_its_mode(service_and_run: ServiceAndRun, home: Path, tmp_path: Path) -> None:
    _, run = service_and_run(json_reply(HELD))
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk").chmod(0o755)
    home.mkdir(parents=True, mode=0o700)
    (home / "state").symlink_to(tmp_path / "disk")

    before = os.umask(0)
    try:
        assert run(*CREATE).code == 0
    finally:
        os.umask(before)

    assert mode(tmp_path / "disk") == 0o755
    assert {path.name: mode(path) for path in (tmp_path / "disk").glob("journal.*")} == dict.fromkeys(
        JOURNAL_FILES, 0o600
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", JOURNAL_FILES)
def test_anything_but_a_regular_journal_file_is_refused(
    service_and_run: ServiceAndRun, state: Path, name: str, kind: str
) -> None:
    server, run = service_and_run(json_reply(HELD))
    put(kind, state / name)
    before = mode(TERMINAL)

    results = [run(*words, "--json") for words in (CREATE, ("journal", "list"))]

    assert [(result.code, result.error["code"]) for result in results] == [(17, "journal_unusable")] * 2
    assert (server.seen, mode(TERMINAL)) == ([], before)
    assert kind != "link" or mode(state / "target") == 0o640


@pytest.mark.parametrize(
    ("name", "loose"), [("", 0o702), ("state", 0o775), ("state/journal.db", 0o666), ("state/journal.head", 0o666)]
)
def test_state_that_others_can_change_is_refused(
    service_and_run: ServiceAndRun, home: Path, name: str, loose: int
) -> None:
    server, run = service_and_run(json_reply(HELD))
    assert run(*CREATE).code == 0
    (home / name).chmod(loose)

    result = run(*CREATE, "--json")

    assert (result.code, len(server.writes), mode(home / name)) == (17, 1, loose)
    assert result.error["hint"] == f"chmod go-w {shlex.quote(str(home / name))}"


def test_state_folder_of_another_user_is_refused(
    service_and_run: ServiceAndRun, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, run = service_and_run(json_reply(HELD))
    give_away(state, monkeypatch)

    assert (run(*CREATE).code, server.seen) == (17, [])


@pytest.mark.parametrize(
    ("variable", "value"), [("ESCROWCTL_HOME", "~/escrowctl"), ("HOME", "."), ("XDG_STATE_HOME", "state")]
)
def test_relative_state_folder_refuses_only_what_needs_it(
    service_and_run: ServiceAndRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    server, run = service_and_run(json_reply(HELD))
    monkeypatch.chdir(tmp_path)
    without = ("ESCROWCTL_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    # platformdirs asks the process, not what a command is given.
    for name in without:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)

    refused = run(*CREATE)

    assert (refused.code, server.seen, list(tmp_path.iterdir())) == (17, [], [])
    assert [run(*words).code for words in (GET, ("--version",), ("help", "exit-codes"))] == [0, 0, 0]


def test_without_home_and_passwd_entry_only_reads_are_sent(
    service_and_run: ServiceAndRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    server, run = service_and_run(json_reply(HELD))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "ESCROWCTL_HOME"):
        monkeypatch.delenv(name)

    results = [run(*words, "--json") for words in (CREATE, ("config", "path"), ("journal", "list"), GET)]

    assert [result.code for result in results] == [17, 17, 17, 0]
    assert (server.writes, list(tmp_path.iterdir())) == ([], [])


def test_without_home_the_passwd_entry_counts(
    service_and_run: ServiceAndRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = service_and_run(json_reply(HELD))
    for name in ("HOME", "ESCROWCTL_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(("op", "x", uid, uid, "", str(tmp_path), "")))

    assert run(*CREATE).code == 0
    assert (tmp_path / ".local/state/escrowctl/journal.db").exists()


def test_absolute_escrowctl_home_is_all_that_is_examined(
    service_and_run: ServiceAndRun, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = service_and_run(json_reply(HELD))
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "relative")

    assert run(*CREATE).code == 0
    assert (home / "state" / "journal.db").exists()


def test_an_empty_home_is_refused() -> None:
    # Not by a command: it would write into the root folder if this failed.
    with pytest.raises(EscrowctlError, match="HOME"):
        _ = Folders({"HOME": ""}).state


@pytest.mark.parametrize("loose", [0o664, 0o602])
def test_config_that_others_can_change_gets_no_key(profile: Profile, run: Run, home: Path, loose: int) -> None:
    server = profile()
    (home / "config.toml").chmod(loose)

    results = [run(*words, "--json") for words in (GET, CREATE)]

    assert [(result.code, result.error["hint"][:11]) for result in results] == [(2, "chmod go-w ")] * 2
    assert (server.seen, mode(home / "config.toml")) == ([], loose)


@pytest.mark.parametrize("name", ["config.toml", ""])
def test_config_of_another_user_gets_no_key(
    profile: Profile, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    server = profile()
    give_away(home / name, monkeypatch)

    assert (run(*GET).code, server.seen) == (2, [])


@pytest.mark.parametrize(
    "environ", [{}, {"ESCROWCTL_API_KEY": KEY, "ESCROWCTL_PROFILE": "a"}], ids=["file", "variable"]
)
def test_config_in_a_folder_others_can_change_gets_no_key(
    profile: Profile, run: Run, home: Path, environ: dict[str, str]
) -> None:
    server = profile()
    home.chmod(0o777)

    assert (run(*GET, environ=environ).code, server.seen) == (2, [])


@pytest.mark.parametrize("loose", ["target", "folder"])
def test_linked_config_is_checked_at_its_target(
    profile: Profile, run: Run, home: Path, tmp_path: Path, loose: str
) -> None:
    server = profile()
    target = tmp_path / "dotfiles" / "escrowctl.toml"
    target.parent.mkdir(mode=0o700)
    (home / "config.toml").rename(target)
    (home / "config.toml").symlink_to(target)
    assert run(*GET).code == 0
    (target if loose == "target" else target.parent).chmod(0o777)

    result = run(*GET)

    assert (result.code, len(server.seen)) == (2, 1)
