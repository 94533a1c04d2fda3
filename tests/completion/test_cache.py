"""Names from the cache: stored by commands, offered by shells, and harmless with any content."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from conftest import Run, ServiceAndRun
from wire_server import answering, http_reply

from completion.shells import bash_script, needs, offer

SHELLS = ("bash", "zsh", "fish")

KEPT = {
    "profile": "acme\nacme-live\nother\n",
    "@default/transaction": "tx_D1 released\ntx_D2\n",
    "@default/user": "usr_1\n",
    "@default/entry": "j12\nj7\n",
    "@default/batch": "b3\n",
    "acme/transaction": "tx_A1 released\ntx_A2\nx_A3 released\n",
    "@sandbox/transaction": "tx_S1\n",
    "@default/event": "msg_2\nmsg_1\n",
}
CASES: tuple[tuple[str, set[str]], ...] = (
    ("escrowctl tx get ", {"tx_D1", "tx_D2"}),
    ("escrowctl tx release x_9 ", {"tx_D2"}),
    ("escrowctl -p acme tx release ", {"tx_A2"}),
    ("escrowctl journal resolve ", {"j12", "j7"}),
    ("escrowctl -p acme journal show j1", {"j12"}),
    ("escrowctl tx create --allow-duplicate ", {"j12", "j7"}),
    ("escrowctl batch resume ", {"b3"}),
    ("escrowctl tx get --profile=acme x", {"x_A3"}),
    ("escrowctl --sandbox tx update ", {"tx_S1"}),
    ("escrowctl user get u", {"usr_1"}),
    ("escrowctl -p ac", {"acme", "acme-live"}),
    ("escrowctl auth switch o", {"other"}),
    ("escrowctl -p missing tx get ", set()),
    ("escrowctl webhook replay msg_9 ", {"msg_1", "msg_2"}),
    ("escrowctl webhook verify --event ", {"msg_1", "msg_2"}),
)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with names of every kind, below ESCROWCTL_HOME."""
    folder = tmp_path / "home" / "cache" / "complete"
    for name, text in KEPT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def environ_with(cache: Path) -> dict[str, str]:
    home = cache.parents[1]
    return {"ESCROWCTL_HOME": str(home), "HOME": str(home)}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line for line, _ in CASES])
def test_names_are_offered_for_matching_options(shell: str, line: str, expected: set[str], cache: Path) -> None:
    assert offer(shell, line, environ_with(cache)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_line_without_a_profile_offers_the_ids_of_the_default_one(shell: str, cache: Path) -> None:
    environ = environ_with(cache)
    (cache / "default").write_text("acme\n")

    assert offer(shell, "escrowctl tx get tx_", environ) == {"tx_A1", "tx_A2"}
    assert offer(shell, "escrowctl journal resolve j1", environ) == {"j12"}
    assert offer(shell, "escrowctl --sandbox tx get ", environ) == {"tx_S1"}
    assert offer(shell, "escrowctl tx get ", {**environ, "ESCROWCTL_PROFILE": "other"}) == set()
    job = {**environ, "ESCROWCTL_BASE_URL": "https://escrow.example.com"}
    assert offer(shell, "escrowctl tx get ", job) == {"tx_D1", "tx_D2"}


@pytest.mark.parametrize("shell", SHELLS)
def test_cache_of_the_user_is_read_without_escrowctl_home(shell: str, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "xdg").mkdir()
    cache.parent.rename(tmp_path / "xdg" / "escrowctl")

    assert offer(shell, "escrowctl -p o", {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "xdg")}) == {"other"}


HOSTILE = (
    "$(touch X)\n`touch X`\n;touch X\ntx_1;touch X\n'$(touch X)'\n\"\n\\\n*\n?\n~\n-rf\x1b[31m\ntx 1\n\ttx\n"
    "../tx\ntx_\u202e1\n" + "a" * 1_000_000 + "\n" + "b" * 129 + "\n<(touch X)\n${IFS}\n!touch\n"
    "-\n-rf\n--yes\ntx_GOOD\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("line", ["escrowctl tx get ", "escrowctl -p "])
def test_commands_planted_in_the_cache_are_not_run(shell: str, line: str, cache: Path, tmp_path: Path) -> None:
    (cache / "@default" / "transaction").write_text(HOSTILE)
    (cache / "profile").write_text(HOSTILE)
    (cache / "default").write_text("$(touch X)\n")
    before = sorted(path.name for path in tmp_path.iterdir())

    assert offer(shell, line, environ_with(cache)) == {"tx_GOOD"}
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert not Path("X").exists()
    assert not (cache.parents[1] / "X").exists()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("instead", ["folder", "fifo", "nothing"])
def test_tab_neither_hangs_nor_prints_errors_with_any_cache_file(shell: str, instead: str, cache: Path) -> None:
    place = cache / "@default" / "transaction"
    place.unlink()
    if instead == "folder":
        place.mkdir()
    elif instead == "fifo":
        os.mkfifo(place)

    assert offer(shell, "escrowctl tx get ", environ_with(cache)) == set()
    assert offer(shell, "escrowctl tx g", environ_with(cache)) == {"get"}


def test_bash_starts_no_process_at_tab(cache: Path) -> None:
    trace = cache / "trace"
    for line in ("escrowctl tx get ", "escrowctl -p a", "escrowctl tx create --currency US", "escrowctl --config "):
        command = [needs("strace"), "-f", "-qq", "-o", str(trace), "-e", "trace=process"]
        subprocess.run(
            [*command, needs("bash"), "--norc", "-c", bash_script(line)],
            env={"PATH": "/usr/bin:/bin", **environ_with(cache)},
            check=True,
            capture_output=True,
        )
        calls = [row.split()[1].partition("(")[0] for row in trace.read_text().splitlines()]
        assert [call for call in calls if call in ("execve", "fork", "vfork", "clone", "clone3")] == ["execve"], line


# What commands keep


def test_ids_are_stored_newest_first_without_repeats_and_private(
    home: Path, service_and_run: ServiceAndRun, run: Run
) -> None:
    _server, there_run = service_and_run(answering(http_reply("200 OK", b'{"status":"held"}')))
    for one in ("tx_1", "tx_2", "tx_1"):
        assert there_run("tx", "get", one).code == 0
    assert there_run("tx", "get", "tx_5", "tx_6").code == 0
    assert there_run("user", "get", "usr_1").code == 0
    made = run("--sandbox", "tx", "create", "--amount", "1", "--currency", "USD", "-q").out

    folder = home / "cache" / "complete"
    assert (folder / "@default" / "transaction").read_text() == "tx_5\ntx_6\ntx_1\ntx_2\n"
    assert (folder / "@default" / "user").read_text() == "usr_1\n"
    assert (folder / "@sandbox" / "transaction").read_text() == made
    modes = {stat.filemode(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert modes == {"drwx------", "-rw-------"}


def test_released_escrows_are_not_offered_to_release(home: Path, run: Run) -> None:
    def stored() -> list[str]:
        return (home / "cache" / "complete" / "@sandbox" / "transaction").read_text().splitlines()

    made = [
        run("--sandbox", "tx", "create", "--amount", "1", "--currency", "USD", "-q").out.strip() for _number in range(3)
    ]
    assert run("--sandbox", "tx", "release", made[0], "--yes").code == 0
    assert stored() == [f"{made[0]} released", made[2], made[1]]
    assert run("--sandbox", "tx", "release", *made[1:], "--yes").code == 0
    assert run("--sandbox", "tx", "list").code == 0

    assert set(stored()) == {f"{one} released" for one in made}


def test_default_profile_is_stored_and_follows_a_switch(home: Path, service_and_run: ServiceAndRun, run: Run) -> None:
    server, _there_run = service_and_run(answering(http_reply("200 OK", b'{"status":"held"}')))
    home.mkdir(parents=True)
    profiles = "".join(
        f'[profiles.{name}]\nbase_url = "{server.base_url}"\napi_key_file = "key"\n' for name in ("a", "b")
    )
    (home / "key").write_text("sk_test_0123456789")
    (home / "key").chmod(0o600)
    (home / "config.toml").write_text(f'default_profile = "a"\n{profiles}')
    default = home / "cache" / "complete" / "default"

    assert run("tx", "get", "tx_1").code == 0
    assert default.read_text() == "a\n"
    assert (home / "cache" / "complete" / "a" / "transaction").read_text() == "tx_1\n"
    assert run("auth", "switch", "b").code == 0
    assert default.read_text() == "b\n"


def test_cache_that_cannot_be_written_is_not_reported(
    home: Path, service_and_run: ServiceAndRun, tmp_path: Path
) -> None:
    _server, run = service_and_run(answering(http_reply("200 OK", b'{"id":"tx_1"}')))
    place = home / "cache" / "complete" / "@default"
    place.mkdir(parents=True)
    target = tmp_path / "target"
    target.touch()
    (place / "transaction").symlink_to(target)

    result = run("tx", "get", "tx_1")

    assert (result.code, result.out, result.err, target.read_text()) == (0, "id\ttx_1\n", "", "")


# Installed

HIDDEN = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "BASH_COMPLETION_USER_DIR")


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".local/share/bash-completion/completions/escrowctl"),
        ("fish", ".config/fish/completions/escrowctl.fish"),
        ("zsh", ".local/share/zsh/site-functions/_escrowctl"),
    ],
)
def test_install_writes_its_own_file_and_no_other(run: Run, tmp_path: Path, shell: str, place: str) -> None:
    user = tmp_path / "user"
    user.mkdir()
    (user / f".{shell}rc").write_text("mine\n")
    environ = {"HOME": str(user), "SHELL": f"/usr/bin/{shell}"}

    named = run("completion", "install", shell, environ=environ, without=HIDDEN)
    again = run("completion", "install", environ=environ, without=HIDDEN)

    assert (named.code, again.code, named.out) == (0, 0, f"{user / place}\n")
    files = {str(path.relative_to(user)): path.read_text() for path in user.rglob("*") if path.is_file()}
    assert files == {f".{shell}rc": "mine\n", place: run("completion", shell).out}
    if shell == "zsh":
        assert f"fpath=({(user / place).parent} $fpath)" in named.err


def test_install_does_not_replace_a_file_it_did_not_write(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "fish" / "completions" / "escrowctl.fish"
    place.parent.mkdir(parents=True)
    place.write_text("# hand-made\n")
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}

    refused = run("completion", "install", "fish", environ=environ)
    assert (refused.code, place.read_text()) == (2, "# hand-made\n")
    assert "--force" in refused.err
    assert run("completion", "install", "fish", "--force", environ=environ).code == 0
    assert place.read_text().startswith("# fish completion for escrowctl")


@pytest.mark.parametrize(("words", "shell"), [(("tcsh",), "/bin/bash"), ((), "/bin/tcsh"), ((), "")])
def test_a_shell_that_is_not_known_is_refused(run: Run, words: tuple[str, ...], shell: str) -> None:
    assert run("completion", "install", *words, environ={"SHELL": shell}).code == 2
