"""`webhook`: what is sent, what is shown once, and what is never stored in the journal."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import KEY, Result, Run, ServiceAndRun
from wire_server import WireServer, by_method, hang_up

from cli.conftest import Profile, names_of_files_with
from cli.replies import WEBHOOK, json_reply

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MADE = b'{"id":"wh_3","url":"https://hooks.example.net/x","events":["a.b"],"status":"enabled","secret":"%s"}'
MODES = ("live", "test")


def bodies(server: WireServer) -> list[object]:
    return [(seen.method, seen.target, json.loads(seen.body)) for seen in server.writes]


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (WEBHOOK[2:], {"url": "https://hooks.example.net/x"}),
        (
            (*WEBHOOK[2:], "--event", "a.b", "--event", "c"),
            {"url": "https://hooks.example.net/x", "events": ["a.b", "c"]},
        ),
        (("--data", '{"target":"https://x.example","n":1.50}'), {"target": "https://x.example", "n": 1.5}),
    ],
)
def test_webhook_body_has_only_given_fields(
    options: tuple[str, ...], body: object, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(MADE % b"s", "201 Created"))

    result = run("webhook", "create", *options, "-q")

    assert (result.code, result.out) == (0, "wh_3\n")
    assert bodies(server) == [("POST", "/api/v1/webhooks", body)]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--url", "hooks.example.net/x"),
        ("--url", "https://a b"),
        ("--url", "https://x.example", "--event", " "),
        ("--url", "https://x.example", "--data", '{"url":"y"}'),
        ("--url", f"https://x.example/{KEY}"),
    ],
)
def test_a_bad_endpoint_is_refused(words: tuple[str, ...], service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(MADE % b"s"))

    result = run("webhook", "create", *words, "--json")

    assert (result.code, result.out, result.error["outcome"], server.seen) == (2, "", "not_sent", [])


def test_signing_secret_is_shown_once_and_not_in_the_journal(home: Path, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"data":%s}' % (MADE % SECRET.encode()), "201 Created"))
    once = ("--idempotency-key", "k1", "--json")

    first, again = run(*WEBHOOK, *once), run(*WEBHOOK, *once)
    shown: list[Result] = [run("journal", "show", "j1", "--json"), run("journal", "list", "--json"), again]

    assert (first.code, first.json["secret"]) == (0, SECRET)
    kept = home / "state" / "signing-secrets" / "j1.json"
    note = json.loads(first.err.splitlines()[0])["note"]
    assert (note["code"], str(kept) in note["message"]) == ("secret", True)
    stored = json.loads(kept.read_text())
    assert (stored["service"], stored["id"], stored["secret"]) == (shown[0].json["service"], "wh_3", SECRET)
    assert (oct(kept.stat().st_mode & 0o777), oct(kept.parent.stat().st_mode & 0o777)) == ("0o600", "0o700")
    assert [SECRET in result.out + result.err for result in shown] == [False] * 3
    # printf %s whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw | sha256sum
    assert again.json["secret"] == "sha256:96ad2ccd81462a766178ae09a71df55f"
    assert names_of_files_with(SECRET, home) == ["state/signing-secrets/j1.json"]


def test_a_secret_of_ones_own_is_sent_and_not_journalled(home: Path, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(by_method(POST=hang_up))
    own = ("--data", '{"signing_secret":"correct horse battery staple"}', "--json")

    first, again = run(*WEBHOOK, *own), run(*WEBHOOK, *own)
    other = run(*WEBHOOK, "--data", '{"signing_secret":"another"}', "--json")

    assert [result.code for result in (first, again, other)] == [12, 12, 12]
    assert [json.loads(seen.body)["signing_secret"][:7] for seen in server.writes] == ["correct", "another"]
    codes = ["outcome_unknown", "earlier_unknown", "outcome_unknown"]
    assert [result.error["code"] for result in (first, again, other)] == codes
    assert ("correct horse" in first.err + again.err, names_of_files_with("correct horse", home)) == (False, [])


@pytest.mark.parametrize(
    ("options", "out"),
    [(("-q",), "wh_3\n"), (("--fields", "id"), "id\twh_3\n"), (("--fields", "/secret"), f"/secret\t{SECRET}\n")],
)
def test_signing_secret_is_stored_and_not_traced_whether_it_is_shown_or_not(
    options: tuple[str, ...], out: str, home: Path, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(MADE % SECRET.encode(), "201 Created"))

    result = run(*WEBHOOK, "--data", '{"token":"not-for-logs"}', "--debug", *options)

    kept = home / "state" / "signing-secrets" / "j1.json"
    assert (result.code, result.out, json.loads(kept.read_text())["secret"]) == (0, out, SECRET)
    assert [text in result.err for text in (str(kept), "wh_3", SECRET, "not-for-logs")] == [True, True, False, False]


def test_signing_secret_that_cannot_be_stored_is_reported(home: Path, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(MADE % SECRET.encode(), "201 Created"))
    (home / "state").mkdir(parents=True, mode=0o700)
    (home / "state" / "signing-secrets").write_text("in the way")

    result = run(*WEBHOOK)

    assert (result.code, SECRET in result.out, "could not store the signing secret" in result.err) == (0, True, True)


@pytest.mark.parametrize("instead", ["pipe", "link"])
def test_signing_secret_is_stored_next_to_what_is_in_its_place(
    home: Path, service_and_run: ServiceAndRun, instead: str
) -> None:
    _server, run = service_and_run(json_reply(MADE % SECRET.encode(), "201 Created"))
    path, target = home / "state" / "signing-secrets" / "j1.json", home.parent / "target"
    path.parent.mkdir(parents=True)
    for folder in (home, home / "state", path.parent):
        folder.chmod(0o700)
    target.write_text("precious")
    os.mkfifo(path) if instead == "pipe" else path.symlink_to(target)
    before = path.lstat()

    result = run(*WEBHOOK)

    assert (result.code, target.read_text()) == (0, "precious")
    assert SECRET in path.with_name("j1-2.json").read_text()
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)


def test_endpoints_are_listed_with_their_addresses_under_any_field_name(service_and_run: ServiceAndRun) -> None:
    listing = (
        b'{"webhooks":[{"id":1,"endpoint":"https://a.example","event_types":["x","y"],"state":"on"},'
        b'{"webhook_id":"wh_2","url":"https://b.example","events":null,"created":"2026-11-21T03:00:00Z"}]}'
    )
    server, run = service_and_run(json_reply(listing))

    piped, as_json = run("webhook", "list"), run("webhook", "list", "--json")

    assert piped.out == ('1\ton\thttps://a.example\t["x","y"]\t\nwh_2\t\thttps://b.example\t\t2026-11-21T03:00:00Z\n')
    assert as_json.json == json.loads(listing)["webhooks"]
    assert [(seen.method, seen.target) for seen in server.seen] == [("GET", "/api/v1/webhooks")] * 2


def test_endpoint_without_the_pointed_fields_of_escrows_has_the_usual_names(profile: Profile, run: Run) -> None:
    answers = by_method(POST=json_reply(MADE % b"s", "201 Created"), GET=json_reply(b"[%s]" % (MADE % b"s")))
    server = profile('reply.id = "/escrowNo"', 'reply.status = "/escrowState"', behave=answers)

    assert [run(*WEBHOOK, "-q").out, run("webhook", "list", "-q").out] == ["wh_3\n", "wh_3\n"]
    assert run("webhook", "list").out == 'wh_3\tenabled\thttps://hooks.example.net/x\t["a.b"]\t\n'
    assert len(server.writes) == 1


def test_code_of_an_endpoint_is_an_error_although_escrows_have_a_pointer(profile: Profile, run: Run) -> None:
    profile('reply.id = "/escrowNo"', behave=json_reply(b'{"id":"wh_1","code":"W1"}'))

    assert run(*WEBHOOK).code == 12


def test_live_http_endpoint_warns_and_test_endpoint_does_not(
    service_and_run: ServiceAndRun, write_config: Callable[[str], Path]
) -> None:
    server, run = service_and_run(json_reply(MADE % b"s", "201 Created"))
    write_config("".join(f'[profiles.{mode}]\nbase_url = "{server.base_url}"\nmode = "{mode}"\n' for mode in MODES))

    results = [
        run("webhook", "create", "--url", "http://x.example", environ={"ESCROWCTL_PROFILE": mode}) for mode in MODES
    ]

    assert [result.code for result in results] == [0, 0]
    assert ["is plain http" in result.err for result in results] == [True, False]


def test_the_journal_names_a_webhook_creation(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(MADE % b"s", "201 Created"))
    assert run(*WEBHOOK, "--reason", "go live").code == 0

    row = run("journal", "list", "--fields", "entry,operation,state,id")

    assert row.out == "j1\twebhook creation\tdone\twh_3\n"
    assert run("journal", "show", "j1", "--json").json["body"] == '{"url":"https://hooks.example.net/x"}'


def test_second_identical_endpoint_is_noted(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(b'{"id":"wh_1"}'))

    first, second = run(*WEBHOOK, "-q"), run(*WEBHOOK, "-q")

    assert [first.err.count("identical endpoint"), second.err.count("identical endpoint")] == [0, 1]
    assert "(j1, wh_1)" in second.err
