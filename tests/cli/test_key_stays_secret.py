"""The configured key goes into one header, to one origin, and appears nowhere else: not in a path, a
body, an output, a hint, a trace or the journal, with any input of the operator and any reply of the service.
"""

from pathlib import Path

import pytest
from conftest import KEY, Run, Serve, ServiceAndRun

from cli.conftest import names_of_files_with
from cli.replies import CREATE, HELD, RELEASE, json_reply, writes_meet

LINES = (CREATE, RELEASE, ("tx", "get", "tx_1"))


@pytest.mark.parametrize("how", ["--json", "--debug"])
@pytest.mark.parametrize("line", LINES, ids=lambda line: line[1])
def test_no_output_and_no_file_has_the_key(
    line: tuple[str, ...], how: str, service_and_run: ServiceAndRun, home: Path
) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run(*line, how)

    assert result.code == 0
    assert KEY not in result.out + result.err
    assert names_of_files_with(KEY, home) == []
    for seen in server.seen:
        assert [value for _, value in seen.headers if KEY in value] == [f"Bearer {KEY}"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("ESCROWCTL_CONFIG", "ESCROWCTL_CA_BUNDLE", "ESCROWCTL_HOME", "ESCROWCTL_JOURNAL_ID"),
        *("ESCROWCTL_API_KEY_FILE", "ESCROWCTL_BASE_URL", "ESCROWCTL_PROFILE", "ESCROWCTL_MODE", "XDG_STATE_HOME"),
    ],
)
@pytest.mark.parametrize("secret", ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"])
def test_secret_in_a_wrong_variable_is_not_shown(name: str, secret: str, run: Run, serve: Serve) -> None:
    server = serve(json_reply(HELD))
    without_service: dict[str, str] = {name: secret}
    with_service = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY, "ESCROWCTL_MODE": "live"}
    lines = (CREATE, ("config", "list"), ("config", "path"), ("doctor",), ("webhook", "verify", "--body", "x"))

    results = [run(*line, environ=one) for line in lines for one in (without_service, with_service | without_service)]

    assert [one.code for one in results if secret[8:] in one.out + one.err] == []


@pytest.mark.parametrize(
    "words",
    [("--data", f'{{"memo":"{KEY}"}}'), ("--reference", KEY), ("--reason", f"with {KEY}"), ("--idempotency-key", KEY)],
    ids=lambda words: words[0],
)
def test_key_in_a_create_is_refused_and_not_shown(
    words: tuple[str, ...], service_and_run: ServiceAndRun, home: Path
) -> None:
    server, run = service_and_run(json_reply(HELD))

    results = [run(*CREATE, *words), run(*CREATE, *words, "--dry-run")]

    assert [(result.code, result.out, KEY in result.err) for result in results] == [(2, "", False)] * 2
    assert server.seen == []
    assert names_of_files_with(KEY, home) == []


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[1])
def test_key_in_a_text_reply_or_redirect_is_not_shown(
    line: tuple[str, ...], service_and_run: ServiceAndRun, home: Path
) -> None:
    results = []
    for reply in (
        json_reply(f"<html>Authorization: Bearer {KEY}".encode()),
        json_reply(b"", "308 Moved", f"Location: https://elsewhere.example/?key={KEY}"),
        json_reply(f"Bearer {KEY}".encode(), "500 Oh No"),
    ):
        _server, run = service_and_run(reply if line[1] == "get" else writes_meet(reply))
        results.append(run(*line, "--debug"))

    assert all(result.code != 0 for result in results)
    assert [result.err.count(KEY) for result in results] == [0, 0, 0]
    assert names_of_files_with(KEY, home) == []


@pytest.mark.parametrize("escaped", ["sk_a/b+c==", r"sk_a\/b+c==", r"\u0073k_a/b+c=="])
@pytest.mark.parametrize("line", LINES, ids=lambda line: line[1])
def test_key_quoted_in_a_refusal_is_not_shown(
    line: tuple[str, ...], escaped: str, service_and_run: ServiceAndRun, home: Path
) -> None:
    """Some JSON encoders write every slash as an escape; read, it is the key again."""
    key = "sk_a/b+c=="
    refusal = json_reply(f'{{"detail":"invalid key {escaped}"}}'.encode(), "401 Unauthorized")
    _server, run = service_and_run(refusal if line[1] == "get" else writes_meet(refusal))

    result = run(*line, "--debug", environ={"ESCROWCTL_API_KEY": key})

    assert result.code == 4
    assert key not in result.out + result.err
    assert names_of_files_with(key, home) == []
