"""Profiles: all settings take effect, guards apply, and mistakes are named."""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import KEY, Run
from wire_server import hang_up

from cli.conftest import Journal, Profile
from cli.replies import CREATE, RELEASE, json_reply
from escrowctl.config.folders import Folders
from escrowctl.config.origin import Network, Origin
from escrowctl.config.service import Service, WebhookSettings
from escrowctl.config.settings import LineValues, Resolver
from escrowctl.contract.json import Number
from escrowctl.contract.record import Pointers
from escrowctl.contract.redaction import Secret
from escrowctl.journal.opening import open_journal


def test_all_profile_settings_reach_the_service(write_config: Callable[[str], Path], home: Path) -> None:
    path = write_config(
        """
[profiles.acme]
base_url = "https://Escrow.Example.com:443/base/"
mode = "test"
api_prefix = "/v1"
api_key_file = "acme.key"
read_only = true
caps = { EUR = "5000", USD = 99, XTS = "1.23456" }
timeout = 12.5
status.released = ["Released", "PAID"]
status.failed = ["VOID"]
status.pending = ["Payout_Queued"]
reply = { id = "/ref", status = "/s", amount = "/value/amt", currency = "/value/ccy" }
webhook.url_field = "endpoint"
webhook.events_field = "topics"
webhook.scheme = "hmac-sha256"
webhook.signature_header = "X-Signature"
reference_field = "externalRef"
currencies = ["XTS"]
idempotency = "header"
retry_throttled = false
service_id = "acme"
journal_id = "5e0c2f4e-0d5b-4c57-9a39-6f1c8a7f2b10"
"""
    )
    (home / "acme.key").write_text(KEY)
    (home / "acme.key").chmod(0o600)

    folders = Folders({"ESCROWCTL_HOME": str(home)})
    found = Resolver(LineValues(profile="acme"), {}, folders).resolve()

    assert found == Service(
        name="acme",
        origin=Origin("https", "escrow.example.com", 443, "/base"),
        identity="acme",
        key=Secret(KEY),
        url_source="--profile acme",
        key_source=f"api_key_file of profile acme ({path.parent / 'acme.key'})",
        live=False,
        profile="acme",
        api_prefix="/v1",
        read_only=True,
        caps={"EUR": Number("5000"), "USD": Number("99"), "XTS": Number("1.23456")},
        currencies=frozenset({"XTS"}),
        reference_field="externalRef",
        idempotency="header",
        retry_throttled=False,
        pointers=Pointers("/ref", "/s", "/value/amt", "/value/ccy"),
        released=frozenset({"released", "paid"}),
        failed=frozenset({"void"}),
        pending=frozenset({"payout_queued"}),
        webhooks=WebhookSettings("endpoint", "topics", "hmac-sha256", "X-Signature"),
        read_timeout=12.5,
        write_timeout=12.5,
        network=Network(),
    )


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("reed_only = true", 'profiles.a.reed_only: there is no such setting; the nearest is "read_only".'),
        ("xyzzy = true", "profiles.a.xyzzy: there is no such setting; the known names are: base_url, mode,"),
        ("status.relesed = ['x']", 'profiles.a.status.relesed: there is no such setting; the nearest is "released".'),
        ("read_only = 'true'", "profiles.a.read_only: it should be true or false, without quotes."),
        ("timeout = '30'", "profiles.a.timeout: it should be seconds above 0 and at most 3600."),
        ("timeout = nan", "profiles.a.timeout: it should be seconds above 0"),
        ("caps.EUR = 5000.5", "profiles.a.caps.EUR: it should be a currency code with an amount"),
        ("caps.EUR = -1", 'profiles.a.caps.EUR: the amount "-1" is negative'),
        ("caps.EUR = '0.001'", 'profiles.a.caps.EUR: the amount "0.001" has too many decimals: EUR has at most 2.'),
        ("caps.XTS = '5'", "profiles.a.caps.XTS: the currency XTS is not an ISO 4217 currency"),
        ("reply.id = 'ref'", "profiles.a.reply.id: it should be a JSON Pointer such as /data/id."),
        ("journal_id = 'j1'", "profiles.a.journal_id: it should be a journal's id"),
        ("status.released = 'released'", "profiles.a.status.released: it should be a list of statuses"),
        ("[profiles.'a b']\nbase_url = 'https://x.example.com'", "profiles.a b: it should be a table with a name of"),
        ("[profile.a]\nmode = 'test'", 'profile: there is no such setting; the nearest is "profiles".'),
        ("[profiles.b]\nmode = 'test'", "profiles.b.base_url: it is missing; it should be the service's base URL"),
    ],
)
def test_config_mistake_is_reported_with_the_expected_value(profile: Profile, run: Run, line: str, part: str) -> None:
    server = profile(line)

    result = run("tx", "get", "tx_1")

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert part in result.err


# Caps


def test_a_read_only_profile_refuses_before_it_reads_or_asks(profile: Profile, run: Run) -> None:
    server = profile("read_only = true", 'mode = "live"')

    result = run("tx", "release", "tx_1", stdin="100\n", terminal=True)

    assert (result.code, result.out, server.seen) == (5, "", [])
    assert "Type the amount" not in result.err


# The journal that belongs to the profile

LOST = "00000000-0000-4000-8000-000000000000"


def make_journal(home: Path) -> None:
    """Make the journal as a first write does."""
    open_journal(home / "state", now=lambda: datetime(2026, 11, 21, tzinfo=UTC)).close()


@pytest.mark.representative("profile-create", "variable-release")
@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
@pytest.mark.parametrize("by", ["profile", "variable", "both, one wrong"])
def test_a_live_write_is_refused_on_another_journal(
    profile: Profile, run: Run, home: Path, line: tuple[str, ...], by: str
) -> None:
    make_journal(home)
    here = run("config", "path", "--json").json["journal_id"]
    server = profile('mode = "live"', *([f'journal_id = "{LOST}"'] if by == "profile" else [f'journal_id = "{here}"']))
    environ = {} if by == "profile" else {"ESCROWCTL_JOURNAL_ID": LOST}

    result = run(*line, "--json", environ=environ)

    assert (result.code, result.out, server.writes) == (17, "", [])
    assert (result.error["code"], result.error["outcome"]) == ("journal_unusable", "not_sent")
    source = "journal_id of profile a" if by == "profile" else "ESCROWCTL_JOURNAL_ID"
    assert all(fact in result.error["message"] for fact in (here, LOST, source))
    with closing(open_journal(home / "state", now=lambda: datetime.now(UTC), reading=True)) as journal:
        assert journal.storage.last() is None


def test_live_write_is_sent_with_the_expected_journal(profile: Profile, run: Run, home: Path) -> None:
    make_journal(home)
    here = run("config", "path", "--json").json["journal_id"]
    server = profile('mode = "live"', f'journal_id = "{here}"')

    assert run(*CREATE, environ={"ESCROWCTL_JOURNAL_ID": here}).code == 0
    assert len(server.writes) == 1


def test_test_write_is_not_bound_to_a_journal(profile: Profile, run: Run) -> None:
    server = profile('mode = "test"', f'journal_id = "{LOST}"')

    assert run(*CREATE, environ={"ESCROWCTL_JOURNAL_ID": LOST}).code == 0
    assert run("--sandbox", *CREATE, environ={"ESCROWCTL_JOURNAL_ID": LOST}).code == 0
    assert len(server.writes) == 1


DECISION = ("journal", "resolve", "j1", "--not-applied", "--reason", "x", "--allow-unreadable", "--yes")
USES = {
    "list": ("journal", "list", "--unknown"),
    "totals": ("journal", "totals"),
    "entry": ("journal", "show", "j1"),
    "export": ("journal", "export"),
    "verify": ("journal", "verify"),
    "batches": ("batch", "list"),
    "register": ("tx", "list", "--local", "--over", "7d"),
    "decision": DECISION,
}


@pytest.mark.representative("register-lost-variable", "totals-another-profile", "decision-another-variable")
@pytest.mark.parametrize("by", ["profile", "variable"])
@pytest.mark.parametrize("state", ["another", "lost"])
@pytest.mark.parametrize("line", USES.values(), ids=USES)
def test_another_journal_is_not_used(
    profile: Profile, run: Run, home: Path, line: tuple[str, ...], state: str, by: str
) -> None:
    profile('mode = "live"', *([f'journal_id = "{LOST}"'] if by == "profile" else []), behave=hang_up)
    if state == "another":
        make_journal(home)
    with_default = ("config", "set", "default_profile", "a")
    assert run(*with_default).code == 0

    refused = run(*line, "--json", environ={"ESCROWCTL_JOURNAL_ID": LOST} if by == "variable" else {})

    assert (refused.code, refused.out, LOST in refused.error["message"]) == (17, "", True)
    assert (home / "state").exists() == (state == "another")


def test_decision_is_not_recorded_in_another_journal(profile: Profile, run: Run, journal: Journal) -> None:
    profile('mode = "live"', behave=hang_up)
    assert run(*CREATE).code == 12

    assert run(*DECISION, environ={"ESCROWCTL_JOURNAL_ID": LOST}).code == 17
    assert journal() == [("create_transaction", "unknown")]


@pytest.mark.parametrize("line", [("journal", "init"), ("config", "path"), ("version",)])
def test_what_leads_to_the_required_journal_works_with_another(line: tuple[str, ...], run: Run, home: Path) -> None:
    make_journal(home)

    assert run(*line, environ={"ESCROWCTL_JOURNAL_ID": LOST}).code == 0
    assert run("journal", "list", environ={"ESCROWCTL_JOURNAL_ID": LOST}).code == 17


def test_no_journal_is_created_in_the_place_of_the_required_one(run: Run, home: Path) -> None:
    refused = run("journal", "init", "--json", environ={"ESCROWCTL_JOURNAL_ID": LOST})

    assert (refused.code, refused.out, (home / "state").exists()) == (17, "", False)
    assert "journal init --from" in refused.error["hint"]
    assert run("journal", "init").code == 0


def test_sandbox_requires_no_journal(run: Run) -> None:
    assert run("--sandbox", "journal", "list", environ={"ESCROWCTL_JOURNAL_ID": LOST}).code == 0


@pytest.mark.parametrize("spoiled", ["ESCROWCTL_MODE", "base_url"])
def test_contradiction_does_not_free_from_the_required_journal(
    profile: Profile, run: Run, home: Path, spoiled: str
) -> None:
    profile('mode = "live"', f'journal_id = "{LOST}"')
    make_journal(home)
    if spoiled == "base_url":
        config = home / "config.toml"
        config.write_text(config.read_text().replace('base_url = "http', 'base_url = "ftp'))

    environ = {"ESCROWCTL_MODE": "test"} if spoiled == "ESCROWCTL_MODE" else {}
    assert run("journal", "list", "--json", environ=environ).code == 2


@pytest.mark.parametrize("line", [("journal", "list"), ("tx", "list", "--local")], ids=["list", "register"])
def test_list_without_a_journal_says_so(line: tuple[str, ...], profile: Profile, run: Run, home: Path) -> None:
    profile('mode = "live"')

    empty = run(*line, "--json")

    assert (empty.code, empty.json) == (0, [])
    assert f"there is no journal yet: the first write creates {home / 'state' / 'journal.db'}" in empty.err


def test_money_held_too_long_is_not_looked_for_without_a_journal(profile: Profile, run: Run) -> None:
    profile('mode = "live"')

    refused = run("tx", "list", "--local", "--over", "7d", "--json")

    assert (refused.code, refused.out, refused.error["code"]) == (6, "", "not_found")


# Limits and refusals


@pytest.mark.parametrize(("setting", "sent"), [("true", 6), ("false", 1)])
def test_throttled_write_is_retried_only_when_the_profile_allows(
    profile: Profile, run: Run, setting: str, sent: int
) -> None:
    server = profile(f"retry_throttled = {setting}", behave=json_reply(b"", "429 Too Many Requests"))

    codes = [run(*CREATE, "--idempotency-key", "k1").code for _ in range(2)]

    assert (codes, len(server.writes)) == ([9, 9], sent)
