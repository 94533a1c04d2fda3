"""`webhook`: what is sent, what is shown once, and what is never stored in the journal."""

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import KEY, Result, Run, ServiceAndRun
from wire_server import WireServer, by_method, hang_up

from cli.conftest import Profile
from cli.replies import json_reply

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MADE = b'{"id":"wh_3","url":"https://hooks.example.net/x","events":["a.b"],"status":"enabled","secret":"%s"}'
MODES = ("live", "test")
CREATE = ("webhook", "create", "--url", "https://hooks.example.net/x")


def bodies(server: WireServer) -> list[object]:
    return [(seen.method, seen.target, json.loads(seen.body)) for seen in server.writes]


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ((), {"url": "https://hooks.example.net/x"}),
        (("--event", "a.b", "--event", "c"), {"url": "https://hooks.example.net/x", "events": ["a.b", "c"]}),
        (("--data", '{"name":"n","n":1.50}'), {"url": "https://hooks.example.net/x", "name": "n", "n": 1.5}),
    ],
)
def test_webhook_body_has_only_given_fields(
    options: tuple[str, ...], body: object, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(MADE % b"s", "201 Created"))

    result = run(*CREATE, *options, "-q")

    assert (result.code, result.out) == (0, "wh_3\n")
    assert bodies(server) == [("POST", "/api/v1/webhooks", body)]


def test_webhook_body_may_come_from_data(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(MADE % b"s", "201 Created"))

    assert run("webhook", "create", "--data", '{"target":"https://x.example"}').code == 0
    assert bodies(server) == [("POST", "/api/v1/webhooks", {"target": "https://x.example"})]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "webhook create needs --url, or the complete request body in --data. Nothing was sent."),
        (
            ("--url", "hooks.example.net/x"),
            '--url "hooks.example.net/x" is not a webhook URL: write one such as '
            "https://hooks.example.net/x. Nothing was sent.",
        ),
        (
            ("--url", "https://a b"),
            "--url must be at most 2048 visible ASCII characters without spaces. Nothing was sent.",
        ),
        (
            ("--url", "https://x.example", "--event", " "),
            '--event " " is not an event: write a name such as transaction.released. Nothing was sent.',
        ),
        (
            ("--url", "https://x.example", "--data", '{"url":"y"}'),
            '--data has "url", which --url or --event sets: leave it out of --data. Nothing was sent.',
        ),
        (
            ("--url", f"https://x.example/{KEY}"),
            "the API key is on the command line, where ps and the shell history show it: "
            "get a new key from the service. Nothing was sent.",
        ),
    ],
)
def test_a_bad_endpoint_is_refused_in_one_sentence(
    words: tuple[str, ...], message: str, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(MADE % b"s"))

    result = run("webhook", "create", *words)

    assert (result.code, result.out, result.err) == (2, "", f"error: {message}\n")
    assert server.seen == []


def everything_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_signing_secret_is_shown_once_and_not_in_the_journal(home: Path, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"data":%s}' % (MADE % SECRET.encode()), "201 Created"))
    once = ("--idempotency-key", "k1", "--json")

    first, again = run(*CREATE, *once), run(*CREATE, *once)
    shown: list[Result] = [run("journal", "show", "j1", "--json"), run("journal", "list", "--json"), again]

    assert (first.code, first.json["secret"]) == (0, SECRET)
    kept = home / "state" / "signing-secrets" / "j1.json"
    note = json.loads(first.err.splitlines()[0])["note"]
    assert note == {"code": "secret", "message": f"the signing secret is shown only once. It is stored in {kept}."}
    assert json.loads(kept.read_text()) == {
        "service": json.loads(shown[0].out)["service"],
        "id": "wh_3",
        "secret": SECRET,
        "reply": {"data": first.json},
    }
    assert (oct(kept.stat().st_mode & 0o777), oct(kept.parent.stat().st_mode & 0o777)) == ("0o600", "0o700")
    assert [SECRET in result.out + result.err for result in shown] == [False] * 3
    # printf %s whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw | sha256sum
    assert again.json["secret"] == "sha256:96ad2ccd81462a766178ae09a71df55f"
    assert [name for name, text in everything_below(home).items() if SECRET.encode() in text] == [
        "state/signing-secrets/j1.json"
    ]


def test_a_secret_of_ones_own_is_sent_and_not_journalled(home: Path, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(by_method(POST=hang_up))
    own = ("--data", '{"signing_secret":"correct horse battery staple"}', "--json")

    first, again = run(*CREATE, *own), run(*CREATE, *own)
    other = run(*CREATE, "--data", '{"signing_secret":"another"}', "--json")

    assert [result.code for result in (first, again, other)] == [12, 12, 12]
    assert [json.loads(seen.body)["signing_secret"] for seen in server.writes] == [
        "correct horse battery staple",
        "another",
    ]
    assert (first.error["code"], again.error["code"], other.error["code"]) == (
        "outcome_unknown",
        "earlier_unknown",
        "outcome_unknown",
    )
    assert "The endpoint may or may not be registered." in first.error["message"]
    texts = [first.err, again.err, *map(str, everything_below(home).values())]
    assert [text for text in texts if "correct horse" in text] == []


def test_debug_shows_no_secret(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(MADE % SECRET.encode(), "201 Created"))

    result = run(*CREATE, "--data", '{"token":"not-for-logs"}', "--debug")

    assert (SECRET in result.err, "not-for-logs" in result.err, "wh_3" in result.err) == (False, False, True)


@pytest.mark.parametrize(
    ("options", "out"),
    [(("-q",), "wh_3\n"), (("--fields", "id,/url"), "id\twh_3\n/url\thttps://hooks.example.net/x\n")],
)
def test_hidden_signing_secret_is_reported_with_its_file(
    options: tuple[str, ...], out: str, home: Path, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(MADE % SECRET.encode(), "201 Created"))

    result = run(*CREATE, *options)

    kept = home / "state" / "signing-secrets" / "j1.json"
    assert (result.code, result.out) == (0, out)
    assert result.err == f"note: the signing secret is not shown. It is stored in {kept}.\n"
    assert json.loads(kept.read_text())["secret"] == SECRET


def test_a_secret_that_was_chosen_is_shown(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(MADE % SECRET.encode(), "201 Created"))

    result = run(*CREATE, "--fields", "/secret")

    assert result.out == f"/secret\t{SECRET}\n"
    assert result.err.startswith("note: the signing secret is shown only once. It is stored in ")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ((), ("the signing secret is shown only once, and escrowctl could not store it in ", ": copy it now.\n")),
        (
            ("-q",),
            (
                "the signing secret is not shown, and escrowctl could not store it in ",
                ": ask the service's support for it.\n",
            ),
        ),
    ],
)
def test_signing_secret_that_cannot_be_stored_is_reported(
    options: tuple[str, ...], parts: tuple[str, str], home: Path, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(MADE % SECRET.encode(), "201 Created"))
    (home / "state").mkdir(parents=True, mode=0o700)
    (home / "state" / "signing-secrets").write_text("in the way")

    result = run(*CREATE, *options)

    assert (result.code, SECRET in result.out) == (0, options == ())
    assert (result.err.startswith(f"note: {parts[0]}"), result.err.endswith(parts[1])) == (True, True)


@pytest.mark.parametrize("instead", ["folder", "pipe", "link"])
def test_signing_secret_is_stored_next_to_what_is_in_its_place(
    home: Path, service_and_run: ServiceAndRun, instead: str
) -> None:
    _server, run = service_and_run(json_reply(MADE % SECRET.encode(), "201 Created"))
    path, target = home / "state" / "signing-secrets" / "j1.json", home.parent / "target"
    path.parent.mkdir(parents=True)
    for folder in (home, home / "state", path.parent):
        folder.chmod(0o700)
    target.write_text("precious")
    match instead:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case _:
            path.symlink_to(target)
    before = path.lstat()

    result = run(*CREATE)

    other = path.with_name("j1-2.json")
    assert (result.code, SECRET in result.out, target.read_text()) == (0, True, "precious")
    assert (f"stored in {other}" in result.err, SECRET in other.read_text()) == (True, True)
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

    assert [run(*CREATE, "-q").out, run("webhook", "list", "-q").out] == ["wh_3\n", "wh_3\n"]
    assert run("webhook", "list").out == 'wh_3\tenabled\thttps://hooks.example.net/x\t["a.b"]\t\n'
    assert len(server.writes) == 1


def test_code_of_an_endpoint_is_an_error_although_escrows_have_a_pointer(profile: Profile, run: Run) -> None:
    profile('reply.id = "/escrowNo"', behave=json_reply(b'{"id":"wh_1","code":"W1"}'))

    assert run(*CREATE).code == 12


def test_live_http_endpoint_warns_and_test_endpoint_does_not(
    service_and_run: ServiceAndRun, write_config: Callable[[str], Path]
) -> None:
    server, run = service_and_run(json_reply(MADE % b"s", "201 Created"))
    write_config("".join(f'[profiles.{mode}]\nbase_url = "{server.base_url}"\nmode = "{mode}"\n' for mode in MODES))

    results = [
        run("webhook", "create", "--url", "http://x.example", environ={"ESCROWCTL_PROFILE": mode}) for mode in MODES
    ]

    assert [result.code for result in results] == [0, 0]
    warning = 'warning: --url "http://x.example" is plain http: events would be sent unencrypted'
    assert [warning in result.err for result in results] == [True, False]


def test_the_journal_names_a_webhook_creation(home: Path, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(MADE % b"s", "201 Created"))
    assert run(*CREATE, "--reason", "go live").code == 0

    row = run("journal", "list", "--fields", "entry,operation,state,id")

    assert row.out == "j1\twebhook creation\tdone\twh_3\n"
    with sqlite3.connect(home / "state" / "journal.db") as journal:
        (body,) = journal.execute("SELECT facts ->> 'body' FROM records WHERE kind = 'intent'").fetchone()
    journal.close()
    assert body == '{"url":"https://hooks.example.net/x"}'


def test_second_identical_endpoint_is_noted(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(b'{"id":"wh_1"}'))
    line = ("webhook", "create", "--url", "https://hooks.example.net/x", "-q")

    first, second = run(*line), run(*line)

    assert [first.err.count("identical endpoint"), second.err.count("identical endpoint")] == [0, 1]
    assert "(j1, wh_1)" in second.err
