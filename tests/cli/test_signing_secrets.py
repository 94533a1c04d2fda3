"""Signing secrets and values named like secrets: shown with their endpoint, never lost, and shown nowhere else."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import ServiceAndRun

from cli.conftest import names_of_files_with
from cli.replies import CREATE, HELD, WEBHOOK, in_turn, json_reply, writes_meet

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = "vt_5f0c7e2d91ab"
UNUSUAL = b'{"id":"wh_3","url":"https://hooks.example.net/x","verification_token":"%s"}' % TOKEN.encode()


OUTSIDE = b'{"data":{"id":"wh_3"},"verification_token":"%s"}' % TOKEN.encode()


@pytest.mark.parametrize(
    "body", [UNUSUAL, b'{"data":%s}' % UNUSUAL, OUTSIDE], ids=["bare", "in an envelope", "outside"]
)
def test_secret_under_an_unusual_name_is_stored_and_reported(
    body: bytes, home: Path, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(body, "201 Created"))

    result = run(*WEBHOOK, "-q")

    stored = home / "state" / "signing-secrets" / "j1.json"
    assert (result.code, TOKEN in result.out, result.err.count(str(stored))) == (0, False, 1)
    document = json.loads(stored.read_text())
    assert (document["id"], document["secret"], document["reply"]) == ("wh_3", None, json.loads(body))
    assert oct(stored.stat().st_mode & 0o777) == "0o600"
    assert names_of_files_with(TOKEN, home) == ["state/signing-secrets/j1.json"]


def test_reply_without_any_unknown_text_is_stored_in_no_file(home: Path, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(
        json_reply(b'{"id":"wh_3","url":"https://hooks.example.net/x","events":["a"]}', "201 Created")
    )

    result = run(*WEBHOOK, "-q")

    assert (result.code, result.err) == (0, "")
    assert not (home / "state" / "signing-secrets").exists()


MADE = b'{"id":"wh_3","hmac":"%s","note":"new"}' % TOKEN.encode()
UNREADABLE = {"cut short": MADE[:-6], "no JSON": b"id=wh_3&hmac=" + TOKEN.encode()}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_secret_in_an_unreadable_reply_is_stored_not_traced(
    body: bytes, home: Path, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(body, "201 Created"))

    result = run(*WEBHOOK, "--debug")

    stored = home / "state" / "signing-secrets" / "j1.json"
    assert (TOKEN in result.out + result.err, result.err.count(str(stored))) == (False, 1)
    assert TOKEN in json.loads(stored.read_text())["reply"]
    assert names_of_files_with(TOKEN, home) == ["state/signing-secrets/j1.json"]


REFUSALS = {
    "in a sentence": f'{{"detail":"the secret {SECRET} is in use"}}',
    "percent-encoded": f'{{"detail":"see /rotate?secret={SECRET.replace("_", "%5F")}"}}',
    "in JSON in a text": json.dumps({"detail": json.dumps({"signing_secret": SECRET})}),
    "in a field": f'{{"message":"in use","client_secret":"{SECRET}"}}',
}


@pytest.mark.parametrize("body", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("line", [WEBHOOK, ("tx", "get", "tx_1")], ids=["webhook", "get"])
def test_signing_secret_in_a_refusal_is_neither_shown_nor_stored(
    line: tuple[str, ...], body: str, home: Path, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(body.encode(), "422 No"))

    result = run(*line, "--debug")

    assert (result.code, SECRET[6:] in result.out + result.err) == (8, False)
    assert names_of_files_with(SECRET[6:], home) == []


def test_values_named_like_secrets_are_not_stored_in_the_journal(home: Path, service_and_run: ServiceAndRun) -> None:
    made = (
        b'{"id":"tx_1","status":"held","amount":100,"currency":"USD","client_secret":"correct horse","token":"tok_1"}'
    )
    _server, run = service_and_run(writes_meet(json_reply(made, "201 Created")))

    created = run(*CREATE, "--json", "--debug", "--idempotency-key", "k1")
    again = run(*CREATE, "--json", "--idempotency-key", "k1")

    assert (created.json["client_secret"], "correct horse" in created.err) == ("correct horse", False)
    # A service may call an id so; what is read from the journal must still have it.
    assert (again.json["client_secret"], again.json["token"]) == ("***", "tok_1")
    assert names_of_files_with("correct horse", home) == []


def test_values_in_queries_are_not_traced(service_and_run: ServiceAndRun) -> None:
    moved = json_reply(b"", "308 Moved", "Location: https://elsewhere.example/?session=abc123&next=xyz789")
    _server, run = service_and_run(moved)

    for line in (("api", "GET", "/users/usr_1?page=p4ge"), (*WEBHOOK[:3], "https://hooks.example.net/x?token=t0ken")):
        result = run(*line, "--debug")
        told = [word for word in ("abc123", "xyz789", "p4ge", "t0ken") if word in result.err]
        assert (result.code, told, "?session=***&next=***" in result.err) == (8, [], True)


def test_value_named_like_a_secret_is_sent_and_not_stored(home: Path, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(b"", "502 Bad Gateway")))
    own = ("--data", '{"card":{"api_key":"correct horse"}}')

    unknown = run(*CREATE, *own, "--json", "--debug")
    again = run("journal", "resolve", "j1", "--resend", "--yes", "--reason", "ticket 5512")

    assert (unknown.code, again.code) == (12, 2)
    assert [json.loads(seen.body)["card"] for seen in server.writes] == [{"api_key": "correct horse"}]
    assert ("correct horse" in unknown.err, names_of_files_with("correct horse", home)) == (False, [])


def test_secret_of_an_older_copy_does_not_replace_an_earlier_one(
    home: Path, tmp_path: Path, service_and_run: ServiceAndRun
) -> None:
    replies = [json_reply(UNUSUAL.replace(TOKEN.encode(), b"vt_%d" % number), "201 Created") for number in range(3)]
    _server, run = service_and_run(writes_meet(in_turn(json_reply(HELD), *replies)))
    assert run(*CREATE).code == 0
    files = [home / "state" / name for name in ("journal.db", "journal.head")]
    for file in files:
        shutil.copy(file, tmp_path)

    reports = [run(*WEBHOOK, "-q").err]
    for _ in range(2):
        for file in files:
            shutil.copy(tmp_path / file.name, file)
        reports.append(run(*WEBHOOK, "-q").err)

    folder = home / "state" / "signing-secrets"
    stored = {path: json.loads(path.read_text())["reply"]["verification_token"] for path in folder.iterdir()}
    expected = [folder / name for name in ("j2.json", "j2-2.json", "j2-3.json")]
    assert stored == dict(zip(expected, ("vt_0", "vt_1", "vt_2"), strict=True))
    assert [str(path) in err for path, err in zip(expected, reports, strict=True)] == [True] * 3
