"""A dry run makes every check that needs no service, ends as the write would, and sends and reads nothing."""

import json

import pytest
from conftest import Run, ServiceAndRun
from wire_server import Behave, hang_up

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, RELEASED, WEBHOOK, in_turn, json_reply, writes_meet

UPDATE = ("tx", "update", "tx_1", "--data", '{"amount":7,"currency":"USD"}', "--yes")
RAW = ("api", "POST", "/notes", "--data", "{}", "--yes")
LINES = (CREATE, RELEASE, UPDATE, WEBHOOK, RAW)


def releasing() -> Behave:
    """Return a service where tx_1 is held until its release."""
    return writes_meet(json_reply(RELEASED), reads=in_turn(json_reply(HELD), json_reply(RELEASED)))


def names(lines: tuple[str, ...]) -> str:
    return lines[1]


@pytest.mark.parametrize("line", LINES, ids=names)
def test_read_only_profile_allows_the_dry_run(line: tuple[str, ...], profile: Profile, run: Run) -> None:
    server = profile("read_only = true", behave=json_reply(HELD))

    rehearsed, done = run(*line, "--dry-run", "--json"), run(*line, "--json")

    assert (rehearsed.code, rehearsed.json["dry_run"]) == (0, True)
    assert (done.code, done.error["code"], server.seen) == (5, "read_only", [])


@pytest.mark.parametrize("line", LINES, ids=names)
def test_another_journal_than_required_refuses_the_dry_run(line: tuple[str, ...], profile: Profile, run: Run) -> None:
    profile('mode = "live"', behave=json_reply(HELD))

    rehearsed = run(*line, "--dry-run", "--json", environ={"ESCROWCTL_JOURNAL_ID": "another"})

    assert (rehearsed.code, rehearsed.error["code"], rehearsed.out) == (17, "journal_unusable", "")


def test_released_escrow_refuses_the_dry_run_of_its_release(profile: Profile, run: Run) -> None:
    server = profile('status.released = ["released"]', behave=releasing())
    assert run(*RELEASE).code == 0
    sent = len(server.seen)

    rehearsed, done = run(*RELEASE, "--dry-run", "--json"), run(*RELEASE, "--json")
    skipped = run(*RELEASE, "--dry-run", "--skip-released", "--json")

    assert (rehearsed.code, rehearsed.error["code"], done.error["code"]) == (7, "already_done", "already_done")
    assert (skipped.code, len(server.seen)) == (0, sent)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (CREATE, 5),
        ((*CREATE[:3], "5", *CREATE[4:]), 0),
        (("tx", "release", "tx_1", "--expect-amount", "100", "--expect-currency", "USD"), 5),
        (RELEASE, 0),
        (("api", "POST", "/notes", "--data", "{}"), 5),
    ],
    ids=["above", "below", "expected amount", "amount not read", "api"],
)
def test_caps_count_in_a_dry_run(line: tuple[str, ...], code: int, profile: Profile, run: Run) -> None:
    server = profile("caps.USD = 50", behave=json_reply(HELD))

    rehearsed = run(*line, "--dry-run")

    assert (rehearsed.code, server.seen) == (code, [])
    assert ("caps were not checked" in rehearsed.err) == (line == RELEASE)


def test_repeated_idempotency_key_is_rehearsed_as_a_repetition(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(HELD))
    line = (*CREATE, "--idempotency-key", "k1")
    assert run(*line).code == 0

    rehearsed = run(*line, "--dry-run", "--json")
    other = run(*CREATE[:3], "7", *CREATE[4:], "--idempotency-key", "k1", "--dry-run", "--json")

    assert (rehearsed.code, rehearsed.json) == (0, {"dry_run": True, "replays": "j1"})
    assert (other.code, other.error["code"]) == (7, "key_reused")


def test_dry_run_of_several_releases_counts_those_that_would_fail(profile: Profile, run: Run) -> None:
    server = profile('status.released = ["released"]', behave=releasing())
    assert run(*RELEASE).code == 0
    sent = len(server.seen)

    rehearsed = run("tx", "release", "tx_1", "tx_2", "--yes", "--dry-run", "--json")

    lines = [json.loads(line) for line in rehearsed.out.splitlines()]
    assert (rehearsed.code, len(server.seen)) == (15, sent)
    assert [line.get("outcome") for line in lines] == ["not_sent", None]


@pytest.mark.parametrize(
    ("behave", "code", "error"),
    [(hang_up, 12, "outcome_unknown"), (json_reply(b"{}", "422 No"), 8, "refused")],
    ids=["unknown", "refused"],
)
@pytest.mark.parametrize("line", [CREATE, RELEASE, UPDATE, RAW], ids=names)
def test_rehearsed_repetition_of_what_is_not_done_ends_as_the_write_would(
    line: tuple[str, ...], behave: Behave, code: int, error: str, profile: Profile, run: Run
) -> None:
    server = profile(behave=writes_meet(behave))
    again = (*line, "--idempotency-key", "k1")
    assert run(*again).code == code
    sent = len(server.seen)

    rehearsed = run(*again, "--dry-run", "--json")

    assert (rehearsed.code, rehearsed.error["code"], rehearsed.out) == (code, error, "")
    assert len(server.seen) == sent


def test_dry_run_prints_no_secret(profile: Profile, run: Run) -> None:
    profile()

    rehearsed = run(*WEBHOOK, "--data", '{"secret":"whsec_TOPSECRETVALUE12345"}', "--dry-run", "--json")

    assert (rehearsed.code, "TOPSECRET" in rehearsed.out + rehearsed.err) == (0, False)


@pytest.mark.parametrize("line", LINES, ids=names)
def test_dry_run_shows_the_request_and_sends_nothing(
    line: tuple[str, ...], service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(json_reply(HELD))

    rehearsed = run(*line, "--dry-run", "--json", "--idempotency-key", "k-1").json

    assert (server.seen, journal(), rehearsed["dry_run"]) == ([], [], True)
    run(*line, "--idempotency-key", "k-1")
    sent = server.writes[0]
    assert rehearsed["method"] == sent.method
    assert rehearsed["url"] == f"{server.base_url}{sent.target}"
    assert (rehearsed["body"] or "").encode() == sent.body
    assert rehearsed["headers"].pop("Authorization") == "Bearer ***"
    assert rehearsed["headers"].pop("X-Request-Id") == "(created when sent)"
    others = ("host", "content-length", "authorization", "x-request-id")
    assert rehearsed["headers"] == {name: value for name, value in sent.headers if name.lower() not in others}
