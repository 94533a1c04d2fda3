"""Bad input is refused in one sentence that names the value and a fix; nothing is sent."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import KEY, Run, ServiceAndRun

from cli.conftest import Profile
from cli.replies import HELD, json_reply

AMOUNTS = (
    ("1,000", "has a thousands separator: write 1000."),
    ("1.250,00", "has a comma: write digits and one point, such as 1250.00."),
    ("1_000", "has an underscore: write 1000."),
    ("1 000", "has spaces: write 1000."),
    ("1'000", "has an apostrophe: write 1000."),
    ("1e3", "is in exponent form: write 1000."),
    ("+5", "has a plus sign: write 5."),
    ("-5", "is negative: write an amount above zero."),
    ("5.", "ends in a point: write 5."),
    (".5", "starts with a point: write 0.5."),
    ("007", "has a leading zero: write 7."),
    ("NaN", "is not a number: write digits and at most one point, such as 100 or 99.95."),
    ("1.2.3", "is not a number: write digits and at most one point, such as 100 or 99.95."),
    ("", "is empty: write digits and at most one point, such as 100 or 99.95."),
    ("0", "is zero: write an amount above zero."),
    ("\u0661\u0660\u0660", "has characters other than ASCII digits: write 100."),
    ("1\u00a0000", "has characters other than ASCII digits: write digits and at most one point, such as 100 or 99.95."),
    ("100.005", "has too many decimals: USD has at most 2."),
)

CURRENCIES = (
    ("usd", '--currency "usd" is not written as a currency code: write USD.'),
    ("EURO", '--currency "EURO" is not a currency code: write three capital letters, such as EUR.'),
    ("", '--currency "" is not a currency code: write three capital letters, such as EUR.'),
    ("ABC", "--currency ABC is not an ISO 4217 currency that escrowctl knows: check the code."),
)

IDS = (
    ("a/b", 'contains "/"'),
    ("%2e%2e", 'contains "%"'),
    ("tx_1\n", 'contains "\\u{a}"'),
    ("", "the transaction id is empty"),
    ("null", '"null" is not a transaction id'),
    ("undefined", '"undefined" is not a transaction id'),
    ("x" * 129, "has 129 characters"),
)


@pytest.mark.parametrize(("amount", "advice"), AMOUNTS)
def test_ambiguous_amount_is_refused_with_a_clear_spelling(
    amount: str, advice: str, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "create", f"--amount={amount}", "--currency", "USD")

    assert (result.code, result.out, server.seen) == (2, "", [])
    shown = amount.replace("\u00a0", r"\u{a0}")
    assert result.err == f'error: --amount "{shown}" {advice} Nothing was sent.\n'


@pytest.mark.parametrize(("amount", "currency"), [("12.5", "JPY"), ("1.0001", "KWD"), ("0.001", "EUR")])
def test_more_decimals_than_the_currency_has_are_refused(
    amount: str, currency: str, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "create", "--amount", amount, "--currency", currency)

    assert (result.code, server.seen) == (2, [])
    assert f'--amount "{amount}" has' in result.err


@pytest.mark.parametrize(
    ("amount", "currency"), [("100.00", "EUR"), ("12345678901234567890.12", "EUR"), ("1.234", "KWD")]
)
def test_amount_is_sent_as_typed(amount: str, currency: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    run("tx", "create", "--amount", amount, "--currency", currency)

    assert server.seen[0].body == f'{{"amount":{amount},"currency":"{currency}"}}'.encode()


@pytest.mark.parametrize(("currency", "sentence"), CURRENCIES)
def test_a_currency_that_is_none_is_refused(currency: str, sentence: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "create", "--amount", "5", "--currency", currency)

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert result.err.splitlines()[0] == f"error: {sentence} Nothing was sent."


def test_hint_of_an_unknown_currency_lets_the_profile_accept_it(profile: Profile, run: Run) -> None:
    profile()
    create = ("tx", "create", "--amount", "5", "--currency", "XAU", "--json")

    refused = run(*create)
    followed = run(*refused.error["hint"].rpartition("escrowctl ")[2].split())

    assert (refused.code, followed.code, run(*create, "--dry-run").code) == (2, 0, 0)


def test_hint_of_an_unknown_currency_without_a_profile_is_to_create_one(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(HELD))

    refused = run("tx", "create", "--amount", "5", "--currency", "XAU", "--json")

    assert refused.error["hint"] == "to let escrowctl accept XAU, first create a profile: escrowctl auth login"


@pytest.mark.parametrize(("resource_id", "sentence"), IDS)
@pytest.mark.parametrize("line", [("tx", "get"), ("tx", "release", "--yes")], ids=["get", "release"])
def test_id_that_does_not_fit_a_path_is_refused(
    line: tuple[str, ...], resource_id: str, sentence: str, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run(*line, "--", resource_id)

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert sentence in result.err
    assert result.err.endswith("Nothing was sent.\n")


@pytest.mark.parametrize(
    ("words", "stdin", "sentence"),
    [
        (("tx", "get"), "", "no transaction id is given"),
        (("tx", "release", "--yes"), "", "no transaction id is given"),
        (("tx", "release", "tx_1", "tx_1", "--yes"), "", "tx_1 is given twice"),
        (("tx", "release", "-", "--yes"), "tx_1\r\ntx_1\n", "tx_1 is given twice"),
        (("tx", "get", "tx_1", "-"), "tx_2\n", "give it alone"),
        (("tx", "create", "--amount", "5"), "", "Missing option '--currency'"),
        (("tx", "creat"), "", "did you mean: escrowctl tx create"),
        (("tx", "create", "--amount", "5", "--amount", "6", "--currency", "USD"), "", "--amount is given twice"),
        (("-p", "a", "-p", "b", "tx", "get", "tx_1"), "", "--profile is given twice"),
        (("-p", "a", "tx", "get", "tx_1", "-p", "b"), "", "--profile is given twice"),
        (
            ("--base-url", "http://localhost", "tx", "get", "tx_1", "--base-url", "http://[::1]"),
            "",
            "--base-url is given twice",
        ),
        (("--base-url", "https://escrow.example.com", "-p", "", "tx", "get", "tx_1"), "", 'there is no profile ""'),
        (("tx", "get", "tx_1", "--color", "blue"), "", '--color "blue" is not one of auto, always, never'),
        (("tx", "get", "tx_1", "--timeout", "0"), "", "--timeout 0 is out of range"),
        (("tx", "get", "tx_1", "--timeout", "nan"), "", "--timeout nan is out of range"),
        (("tx", "create", "--amount", "5", "--currency", "USD", "--data", "{"), "", "--data was truncated"),
        (("tx", "create", "--amount", "5", "--currency", "USD", "--data", '{"amount": 6}'), "", "--amount sets"),
        (("tx", "create", "--amount", "5", "--currency", "USD", "--data", "@nowhere"), "", "No such file"),
        (
            ("tx", "create", "--amount", "5", "--currency", "USD", "--reference", " "),
            "",
            "--reference must be one line",
        ),
        (("tx", "create", "--amount", "5", "--currency", "USD", "--idempotency-key", "a b"), "", "visible ASCII"),
        (
            ("tx", "create", "--amount", "5", "--currency", "USD", "--allow-duplicate", "12"),
            "",
            '"12" is not a journal entry',
        ),
        (
            ("tx", "create", "--amount", "5", "--currency", "USD", "--reason", f"key {KEY}"),
            "",
            "API key is on the command line",
        ),
        (("journal", "show", "x"), "", '"x" is not a journal entry'),
        (("journal", "list", "--limit", "0"), "", "--limit 0 is not in the range 1<=x<=10000."),
        (("help", "nothing"), "", 'there is no command or topic "nothing"'),
        (("--sandbox", "-p", "x", "tx", "get", "tx_1"), "", "--sandbox and --profile contradict each other"),
    ],
)
def test_unusable_input_is_refused_in_one_sentence(
    words: tuple[str, ...], stdin: str, sentence: str, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run(*words, stdin=stdin)

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert sentence in result.err
    assert result.err.startswith("error: ")
    assert KEY not in result.err


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("https://user:secret@escrow.example.com", "contains a user name or password"),
        ("https://escrow.example.com?x=1", "has a query: write https://escrow.example.com."),
        ("https://escrow.example.com#top", "has a fragment: write https://escrow.example.com."),
        ("http://escrow.example.com", "is plain http to another host"),
        ("http://127.0.0.1.evil.example", "is plain http to another host"),
        ("https://escrow.example.com:99999", "has no usable port"),
        ("https://escrow.example.com/a/../b", '"https://escrow.example.com/a/../b" contains'),
        ("https://escrow.example.com\n", "has spaces, control or non-ASCII characters"),
    ],
)
def test_base_url_that_could_leak_the_key_is_refused(url: str, sentence: str, run: Run) -> None:
    result = run("tx", "get", "tx_1", environ={"ESCROWCTL_BASE_URL": url, "ESCROWCTL_API_KEY": KEY})

    assert (result.code, result.out) == (2, "")
    assert f"error: ESCROWCTL_BASE_URL {sentence}".split(" has ")[0].split(" is ")[0] in result.err
    assert sentence in result.err
    assert "secret" not in result.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("default_profile = \n", "cannot be read as TOML: Invalid value (at line 1,"),
        ("x = 1\n[profiles.a]\nbase_url = 'https://x\n", "cannot be read as TOML: "),
        ("[profiles.a]\nbase_url = 1\n", "profiles.a.base_url: "),
        ("[profiles.a]\nbase_url = 'https://x'\nmod = 'live'\n", "profiles.a.mod: "),
        ("[profiles.a]\nbase_url = 'https://x'\nmode = 'prod'\n", "profiles.a.mode: "),
        ("[profiles.b]\nbase_url = 'https://x'\n", 'there is no profile "a" in '),
        ("", 'there is no profile "a" in '),
    ],
)
def test_invalid_config_file_is_reported_with_its_line_or_setting(
    text: str, sentence: str, run: Run, write_config: Callable[[str], Path]
) -> None:
    path = write_config(text)

    result = run("tx", "get", "tx_1", "-p", "a")

    assert (result.code, result.out) == (2, "")
    assert str(path) in result.err
    assert sentence in result.err


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
    ("content", "mode", "sentence"),
    [
        (None, 0o600, "there is no file"),
        ("sk_test_1", 0o644, "is accessible to other users (mode 0644)"),
        ("sk_test_1", 0o660, "is accessible to other users (mode 0660)"),
        ("sk test CANARY", 0o600, "has spaces, line breaks or control characters"),
        ("sk_CANARY\nsk_2\n", 0o600, "has spaces, line breaks or control characters"),
        ("sk_\x07CANARY", 0o600, "has spaces, line breaks or control characters"),
    ],
)
def test_unusable_key_file_is_refused_and_its_content_not_shown(
    content: str | None, mode: int, sentence: str, service_and_run: ServiceAndRun, tmp_path: Path
) -> None:
    server, run = service_and_run(json_reply(HELD))
    path = tmp_path / "key"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY_FILE": str(path)}

    # `service_and_run` sets a key; this run has only the file's.
    result = run("tx", "get", "tx_1", environ=environ, without=("ESCROWCTL_API_KEY",))

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert sentence in result.err
    assert "CANARY" not in result.err


@pytest.mark.parametrize("key", ["a b", "sk\nCANARY", "CANARY\x1b", "sch\u00f6n CANARY"])
def test_a_key_with_odd_characters_is_refused_and_never_shown(key: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "get", "tx_1", "--debug", environ={"ESCROWCTL_API_KEY": key})

    assert (result.code, server.seen) == (2, [])
    assert "CANARY" not in result.err


def test_empty_key_is_refused(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "get", "tx_1", "--json", environ={"ESCROWCTL_API_KEY": ""})

    assert (result.code, server.seen) == (4, [])
    assert result.error["code"] == "key_missing"


def test_usage_error_is_json_when_json_was_requested(run: Run) -> None:
    result = run("--json", "tx", "create", "--amuont", "5")

    assert (result.code, result.out) == (2, "")
    assert result.error["code"] == "usage"
    assert result.error["outcome"] == "not_sent"
