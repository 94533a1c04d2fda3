"""Bad input and lines that cannot be carried out are refused before anything is sent."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import KEY, Run, ServiceAndRun

from cli.conftest import Profile
from cli.replies import HELD, RELEASE, json_reply

AMOUNTS = ("1,000", "1 000", "1e3", "+5", "-5", "5.", "007", "NaN", "", "0", "\u0661\u0660\u0660", "100.005")
CURRENCIES = ("usd", "EURO", "", "ABC")
IDS = ("a/b", "%2e%2e", "tx_1\n", "", "null", "undefined", "x" * 129)


@pytest.mark.parametrize(
    ("amount", "currency"), [("100.00", "EUR"), ("12345678901234567890.12", "EUR"), ("1.234", "KWD")]
)
def test_amount_is_sent_as_typed(amount: str, currency: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    run("tx", "create", "--amount", amount, "--currency", currency)

    assert server.seen[0].body == f'{{"amount":{amount},"currency":"{currency}"}}'.encode()


def test_hint_of_an_unknown_currency_lets_the_profile_accept_it(profile: Profile, run: Run) -> None:
    profile()
    create = ("tx", "create", "--amount", "5", "--currency", "XAU", "--json")

    refused = run(*create)
    followed = run(*refused.error["hint"].rpartition("escrowctl ")[2].split())

    assert (refused.code, followed.code, run(*create, "--dry-run").code) == (2, 0, 0)


BAD_LISTS = (
    *("--limit 2 --all", "--status held,", "--since soon", "--raw --all", "--raw --status x"),
    *("--refresh", "--over 7d", "--local --over week"),
)
BAD_WAITS = (
    "wait tx_1",
    "wait tx_1 --for released",
    "wait tx_1 --for held,x --fail-on HELD",
    "watch tx_1 --interval 0s",
)
FIVE = ("tx", "create", "--amount", "5", "--currency", "USD")


@pytest.mark.parametrize(
    "words",
    [
        ("tx", "get"),
        ("tx", "release", "--yes"),
        ("tx", "release", "tx_1", "tx_1", "--yes"),
        ("tx", "release", "-", "--yes"),
        (*RELEASE, "--wait"),
        (*RELEASE, "--wait", "--deadline", "soon"),
        ("tx", "get", "tx_1", "-"),
        ("tx", "create", "--amount", "5"),
        ("tx", "create", "--amount", "12.5", "--currency", "JPY"),
        *(("tx", "create", f"--amount={amount}", "--currency", "USD") for amount in AMOUNTS),
        *(("tx", "create", "--amount", "5", "--currency", currency) for currency in CURRENCIES),
        *((*line, "--", one) for one in IDS for line in (("tx", "get"), ("tx", "release", "--yes"))),
        (*FIVE, "--amount", "6"),
        ("-p", "a", "tx", "get", "tx_1", "-p", "b"),
        ("--base-url", "http://localhost", "tx", "get", "tx_1", "--base-url", "http://[::1]"),
        ("--base-url", "https://escrow.example.com", "-p", "", "tx", "get", "tx_1"),
        ("tx", "get", "tx_1", "--timeout", "0"),
        ("tx", "get", "tx_1", "--timeout", "nan"),
        (*FIVE, "--data", "{"),
        (*FIVE, "--data", '{"amount": 6}'),
        (*FIVE, "--data", "@nowhere"),
        (*FIVE, "--reference", " "),
        (*FIVE, "--idempotency-key", "a b"),
        (*FIVE, "--allow-duplicate", "12"),
        *(("tx", "list", *words.split(" ")) for words in BAD_LISTS),
        *(("tx", *words.split(" ")) for words in BAD_WAITS),
        ("journal", "show", "x"),
        ("journal", "list", "--limit", "0"),
        ("help", "nothing"),
        ("--sandbox", "-p", "x", "tx", "get", "tx_1"),
    ],
)
def test_unusable_input_sends_nothing(words: tuple[str, ...], service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run(*words, stdin="tx_1\r\ntx_1\n")

    assert (result.code, result.out, server.seen) == (2, "", [])


@pytest.mark.parametrize(
    "value",
    [
        *("[" * 900 + "]" * 900, "{a=" * 3000 + "1" + "}" * 3000, "9" * 100_000, "0x" + "f" * 100_000),
        *("x" * 1024 * 1024, f"{'[' * 33}{']' * 33}", f"{{{'a.' * 40}b = 1}}"),
    ],
    ids=["arrays", "tables", "digits", "hexadecimal", "size", "33 levels", "dotted"],
)
@pytest.mark.parametrize(
    "words", [("tx", "get", "tx_1"), ("config", "list"), ("config", "set", "profiles.a.mode", "live")]
)
def test_config_file_beyond_the_bounds_is_refused_in_one_sentence(
    value: str, words: tuple[str, ...], run: Run, write_config: Callable[[str], Path]
) -> None:
    text = f"[profiles.a]\nbase_url = 'https://x'\ntimeout = {value}\n"
    path = write_config(text)

    result = run(*words, "--json")

    assert (result.code, result.out, result.error["code"]) == (2, "", "bad_config")
    assert (str(path) in result.error["message"], len(result.err) < 500, path.read_text()) == (True, True, text)


@pytest.mark.parametrize(
    ("content", "mode"),
    [
        (None, 0o600),
        ("sk_test_1", 0o644),
        ("sk_test_1", 0o660),
        ("sk test CANARY", 0o600),
        ("CANARY", 0o600),
        ("sk_CANARY\nsk_2\n", 0o600),
        ("\udcff" * 20, 0o600),
        ("a pipe", 0o600),
    ],
)
def test_unusable_key_file_is_refused_and_its_content_not_shown(
    content: str | None, mode: int, service_and_run: ServiceAndRun, tmp_path: Path
) -> None:
    server, run = service_and_run(json_reply(HELD))
    path = tmp_path / "key"
    if content == "a pipe":
        os.mkfifo(path, mode)
    elif content is not None:
        path.write_text(content, errors="surrogateescape")
        path.chmod(mode)
    environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY_FILE": str(path)}

    # `service_and_run` sets a key; this run has only the file's.
    result = run("tx", "get", "tx_1", environ=environ, without=("ESCROWCTL_API_KEY",))

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert "CANARY" not in result.err


@pytest.mark.parametrize("key", ["sk\nCANARY", "sch\u00f6n CANARY", "CANARY"])
def test_odd_or_short_key_is_refused_and_never_shown(key: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "get", "tx_1", "--debug", environ={"ESCROWCTL_API_KEY": key})

    assert (result.code, server.seen) == (2, [])
    assert "CANARY" not in result.err


class Line(NamedTuple):
    """A command line, its exit code, and its standard input; `terminal`: it is typed at one."""

    words: str
    code: int
    stdin: str = ""
    terminal: bool = False
    environ: dict[str, str] = {}  # noqa: RUF012 - never changed
    config: str = ""
    credentials: str = ""


ACCOUNT = "https://escrow.example.com\ntest\n"
PROFILE = '[profiles.a]\nbase_url = "https://a.example.com"\nmode = "test"\n'

LINES = (
    Line("auth login", 3, ACCOUNT + "a\n", terminal=True),
    Line("auth switch", 2, config="[profiles]\n"),
    Line("auth logout", 2),
    Line(
        "-p a tx release tx_1 --wait", 2, config=PROFILE, environ={"ESCROWCTL_API_KEY": KEY, "ESCROWCTL_PROFILE": "a"}
    ),
    Line("-p a tx get tx_1", 2, config=PROFILE, credentials="x = ["),
    Line("-p a tx get tx_1", 2, config=PROFILE, credentials='[a]\norigin = "https://a.example.com"\n'),
    Line("--base-url https://a.example.com sandbox status", 2),
    Line("sandbox set fault.create=drop-reply*3", 2),
    Line("sandbox set variant.prefix=/v2", 2),
    Line("sandbox move tx_DISPUTED held", 7),
    Line("sandbox reset", 3),
    Line("sandbox reset", 3, "no\n", terminal=True),
)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.words[:60])
def test_line_that_cannot_be_carried_out_ends_with_its_code(line: Line, run: Run, home: Path) -> None:
    home.mkdir(mode=0o700, parents=True)
    for name, text in (("config.toml", line.config), ("credentials.toml", line.credentials)):
        if text:
            (home / name).write_text(text)
            (home / name).chmod(0o600)

    result = run(*line.words.split(), stdin=line.stdin, terminal=line.terminal, environ=line.environ)

    assert result.code == line.code, result.err


@pytest.mark.parametrize("name", ["config.toml", "credentials.toml"])
def test_file_that_is_no_text_is_refused(name: str, run: Run, home: Path) -> None:
    home.mkdir(mode=0o700, parents=True)
    (home / "config.toml").write_text(PROFILE)
    (home / name).write_bytes(b"\xff\xfe")
    (home / name).chmod(0o600)

    assert run("-p", "a", "tx", "get", "tx_1").code == 2
