"""`escrowctl doctor`: what is wrong with a set-up is named with its correction, and the rest is still checked."""

import socket
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from conftest import KEY, NOW, Run, Serve
from services.service import ExampleService, Reply, ok
from wire_server import Behave, Seen, answering, http_reply, reset, say_nothing

from cli.conftest import Profile
from cli.doctor_checks import check, checks, failed, read_checks
from cli.events import rows_of
from cli.replies import CREATE, writes_meet
from cli.test_tls import TlsServer

DATE = "Date: Sat, 21 Nov 2026 03:12:44 GMT"
LISTS = {"GET /webhooks": ok('{"data":[]}'), "GET /transactions": ok('{"data":[]}')}
NAMES = [
    *("config", "base_url", "key", "proxy", "dns", "tcp", "tls", "access", "clock"),
    *("locks", "journal", "unknown"),
]


def service(prefix: str = "/api/v1", routes: Mapping[str, Reply] = LISTS) -> Behave:
    """Return a service that lists webhooks and transactions under a prefix."""
    return ExampleService("lists", routes, (), prefix=prefix).behave()


def refusing(status: str) -> Behave:
    return answering(http_reply(status, b'{"detail":"no"}'))


def files_of(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_a_valid_set_up_is_ok_and_nothing_is_changed(profile: Profile, run: Run, home: Path) -> None:
    server = profile(behave=service())
    run(*CREATE)
    before, writes = files_of(home.parent), len(server.writes)

    result = run("doctor", "--json")

    assert (result.code, result.err) == (0, "")
    assert list(checks(result)) == NAMES
    assert set(checks(result).values()) <= {"ok", "skipped"}
    assert [seen.target for seen in server.seen if not seen.is_write] == ["/api/v1/webhooks"]
    assert files_of(home.parent) == before
    assert len(server.writes) == writes


def test_quiet_shows_only_what_is_not_in_order(profile: Profile, run: Run) -> None:
    profile(behave=service())
    valid = run("doctor", "-q")
    profile(behave=refusing("403 Forbidden"))

    refused = run("doctor", "-q")

    assert (valid.code, valid.out) == (0, "")
    assert (refused.code, refused.out) == (16, "access\n")


def test_journal_is_verified_in_part_if_time_runs_out(profile: Profile, run: Run) -> None:
    profile(behave=service())
    run(*CREATE)
    seconds = iter(range(1_000_000))

    result = run("doctor", "--json", monotonic=lambda: next(seconds))

    assert check(result, "journal")["verdict"] == "ok"
    assert "escrowctl journal verify" in check(result, "journal")["hint"]


def test_nothing_configured_names_both_ways_on(run: Run, home: Path) -> None:
    result = run("doctor", "--json")

    made = ["config", "base_url", "locks", "journal", "unknown"]
    assert (result.code, failed(result), list(checks(result))) == (16, ["base_url"], made)
    assert all(way in check(result, "base_url")["hint"] for way in ("auth login", "--sandbox doctor"))
    assert result.error["code"] == "check_failed"
    assert not home.exists()


def test_sandbox_that_cannot_be_opened_is_a_failed_check(run: Run, home: Path) -> None:
    run("--sandbox", "tx", "create", "--amount", "1", "--currency", "EUR")
    rows_of(next(home.rglob("sandbox.db")), "PRAGMA user_version = 6")

    result = run("--sandbox", "doctor", "--json")

    assert (result.code, failed(result), "journal" in checks(result)) == (16, ["base_url"], True)


def test_broken_config_file_is_named_and_the_rest_is_checked(write_config: Callable[[str], Path], run: Run) -> None:
    path = write_config("default_profile = [\n")

    result = run("doctor")

    assert (result.code, failed(result)) == (16, ["config"])
    assert str(path) in check(result, "config")["finding"]
    assert ("base_url" in checks(result), "locks" in checks(result)) == (False, False)


@pytest.mark.parametrize("name", ["config.toml", "credentials.toml", "a.key"])
def test_mode_that_lets_others_in_fails_with_its_chmod(name: str, profile: Profile, run: Run, home: Path) -> None:
    profile(behave=service())
    (home / name).touch()
    (home / name).chmod(0o666)

    result = run("doctor", "--json")

    assert result.code == 16
    hints = [one["hint"] for one in read_checks(result) if one["verdict"] == "failed"]
    assert all(hint.startswith("chmod ") and hint.endswith(f"/{name}") for hint in hints)


def test_key_file_is_named_and_the_key_never_shown(profile: Profile, run: Run, home: Path) -> None:
    profile(behave=answering(http_reply("401 Unauthorized", f'{{"detail":"bad key {KEY}"}}'.encode())))

    results = [run("doctor", *words) for words in ((), ("--json",), ("--debug",), ("--json", "--debug"))]

    assert all(KEY not in result.out + result.err for result in results)
    assert str(home / "a.key") in check(results[1], "key")["finding"]


@pytest.mark.parametrize(("configured", "right"), [("/api/v1", "/v1"), ("/wrong", "/api/v1")])
def test_wrong_prefix_is_named_saved_and_then_used(configured: str, right: str, profile: Profile, run: Run) -> None:
    server = profile(f'api_prefix = "{configured}"', behave=service(right))

    looked = run("doctor", "--json")

    assert (looked.code, failed(looked)) == (16, ["access"])
    assert check(looked, "access")["hint"] == f"escrowctl config set api_prefix {right}"
    assert run("webhook", "list").code == 6

    saved = run("doctor", "--save")

    assert (saved.code, checks(saved)["access"]) == (0, "found")
    assert (run("webhook", "list", "--json").json, run("config", "get", "api_prefix").out) == ([], f"{right}\n")
    assert checks(run("doctor"))["access"] == "ok"
    assert not server.writes


def test_prefix_without_a_profile_is_not_saved(serve: Serve, run: Run, home: Path) -> None:
    environ = {"ESCROWCTL_BASE_URL": serve(service("/v1")).base_url, "ESCROWCTL_API_KEY": KEY}

    result = run("doctor", "--save", environ=environ)

    assert (result.code, "--api-prefix /v1" in result.err) == (16, True)
    assert not (home / "config.toml").exists()


@pytest.mark.parametrize(
    ("own", "other", "hint"),
    [
        ("401 Unauthorized", "200 OK", "auth login"),
        ("404 Not Found", "401 Unauthorized", "config set api_prefix /v1"),
        ("404 Not Found", "404 Not Found", "check the base URL"),
        ("503 Service Unavailable", "200 OK", "None"),
    ],
)
def test_prefix_that_may_be_wrong_is_not_saved(own: str, other: str, hint: str, profile: Profile, run: Run) -> None:
    def behave(seen: Seen, connection: socket.socket) -> None:
        refusing(own if seen.target.startswith("/api/") else other)(seen, connection)

    profile(behave=behave)

    result = run("doctor", "--save", "--json")

    assert (result.code, failed(result)) == (16, ["access"])
    assert hint in str(check(result, "access")["hint"])
    assert run("config", "get", "api_prefix").out == "/api/v1\n"


@pytest.mark.parametrize(
    ("webhooks", "transactions", "verdict"),
    [
        ("200 OK", "404 Not Found", "ok"),
        ("403 Forbidden", "200 OK", "warning"),
        ("403 Forbidden", "403 Forbidden", "failed"),
        ("500 Internal Server Error", "200 OK", "failed"),
    ],
)
def test_access_is_judged_by_the_documented_call_first(
    webhooks: str, transactions: str, verdict: str, profile: Profile, run: Run
) -> None:
    routes = {"GET /webhooks": Reply(webhooks, "[]"), "GET /transactions": Reply(transactions, "[]")}
    profile(behave=service(routes=routes))

    result = run("doctor")

    assert (result.code, checks(result)["access"]) == (16 if verdict == "failed" else 0, verdict)


def test_unknown_outcomes_are_counted(profile: Profile, run: Run) -> None:
    profile(behave=writes_meet(reset, reads=service()))
    assert run(*CREATE).code == 12

    unknown = check(run("doctor", "--json"), "unknown")

    assert (unknown["verdict"], unknown["hint"]) == ("warning", "escrowctl journal list --unknown")


def test_damaged_changed_or_older_journal_fails(profile: Profile, run: Run, home: Path) -> None:
    profile(behave=service())
    path = home / "state" / "journal.db"
    run(*CREATE)
    older = path.read_bytes()
    run(*CREATE)
    rows_of(path, "UPDATE records SET facts = replace(facts, 'USD', 'EUR') WHERE sequence = 1")
    changed = path.read_bytes()

    for content in (older, changed, b"no database " * 1000):
        path.write_bytes(content)
        result = run("doctor", "--json")
        assert (result.code, failed(result), list(checks(result))) == (16, ["journal"], NAMES[:-1])
        assert "journal verify" in check(result, "journal")["hint"]


@pytest.mark.parametrize(("mode", "journal_id"), [("live", "another"), ("live", ""), ("test", "another")])
def test_another_journal_than_is_required_fails(mode: str, journal_id: str, profile: Profile, run: Run) -> None:
    profile(f'mode = "{mode}"', 'status.released = ["released"]', behave=service())

    result = run("doctor", environ={"ESCROWCTL_JOURNAL_ID": journal_id})

    assert (result.code, failed(result)) == ((16, ["journal"]) if mode == "live" else (0, []))


def test_ci_job_without_a_history_or_a_released_status_is_warned(profile: Profile, run: Run) -> None:
    profile('mode = "live"', behave=service())

    in_ci, elsewhere = run("doctor", "--json", environ={"CI": "true"}), run("doctor")

    assert (in_ci.code, check(in_ci, "history")["verdict"]) == (0, "warning")
    assert "journal init" in check(in_ci, "history")["hint"]
    assert (elsewhere.code, checks(elsewhere)["released"], "history" in checks(elsewhere)) == (0, "warning", False)
    profile('mode = "test"', behave=service())
    assert "history" not in checks(run("doctor", environ={"CI": "true"}))


@pytest.mark.parametrize(("seconds", "verdict"), [(45, "ok"), (-90, "warning")])
def test_clock_is_compared_with_the_date_of_the_reply(seconds: int, verdict: str, profile: Profile, run: Run) -> None:
    profile(behave=answering(http_reply("200 OK", b"[]", DATE)))

    result = run("doctor", now=lambda: NOW + timedelta(seconds=seconds))

    assert (result.code, checks(result)["clock"]) == (0, verdict)


def test_host_without_an_address_and_closed_port_are_named(serve: Serve, run: Run) -> None:
    server = serve(service())
    server.close()
    urls = ("https://nosuch.invalid", server.base_url)

    results = [run("doctor", environ={"ESCROWCTL_BASE_URL": url, "ESCROWCTL_API_KEY": KEY}) for url in urls]

    assert [(result.code, failed(result)) for result in results] == [(16, ["dns"]), (16, ["tcp"])]
    assert (checks(results[0]).keys() & {"tcp", "access"}, checks(results[0])["locks"]) == (set(), "ok")


@pytest.mark.parametrize("behave", [reset, say_nothing])
def test_service_that_accepts_and_does_not_answer_fails_access(behave: Behave, profile: Profile, run: Run) -> None:
    profile(behave=behave)

    result = run("doctor", "--timeout", "0.2")

    assert (result.code, failed(result), checks(result)["tcp"]) == (16, ["access"], "ok")


def test_refusing_proxy_is_named_without_its_password(serve: Serve, run: Run) -> None:
    proxy = f"http://robot:s3cr3t@127.0.0.1:{serve(refusing('403 Forbidden')).port}"
    environ = {"ESCROWCTL_BASE_URL": "https://escrow.example.com", "ESCROWCTL_API_KEY": KEY, "HTTPS_PROXY": proxy}

    result = run("doctor", environ=environ)

    assert (result.code, failed(result)) == (16, ["tcp"])
    assert "HTTPS_PROXY" in check(result, "proxy")["finding"]
    assert "s3cr3t" not in result.out + result.err


@pytest.mark.parametrize(
    ("issuer", "days", "verdict"), [("trusted", 90, "ok"), ("trusted", 5, "warning"), ("unknown", 90, "failed")]
)
def test_certificate_is_described_or_refused(issuer: str, days: int, verdict: str, run: Run, tmp_path: Path) -> None:
    authority, bundle = trustme.CA(organization_name="Acme CA"), tmp_path / "ca.pem"
    context, ends = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), datetime.now(UTC) + timedelta(days=days, hours=1)
    authority.issue_cert("localhost", not_after=ends).configure_cert(context)
    server = TlsServer(context, ends_with=b"\r\n\r\n")
    (authority if issuer == "trusted" else trustme.CA()).cert_pem.write_to_path(str(bundle))
    environ = {"ESCROWCTL_BASE_URL": f"https://localhost:{server.port}", "ESCROWCTL_API_KEY": KEY}

    result = run("doctor", "--json", environ={**environ, "ESCROWCTL_CA_BUNDLE": str(bundle)})

    server.listener.close()
    tls = check(result, "tls")
    assert (tls["verdict"], checks(result)["tcp"]) == (verdict, "ok")
    if issuer == "unknown":
        assert (result.code, server.heads) == (16, [])
        assert "ESCROWCTL_CA_BUNDLE" in tls["hint"]
