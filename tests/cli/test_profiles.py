"""Profiles: all settings take effect, guards apply, and mistakes are named."""

import re
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import KEY, Run
from wire_server import hang_up

from cli.conftest import Journal, Profile
from cli.replies import CREATE, RELEASE, WEBHOOK
from cli.test_dry_run import UPDATE
from escrowctl.config.folders import Folders
from escrowctl.config.origin import Network, Origin
from escrowctl.config.service import Service, WebhookSettings
from escrowctl.config.settings import ServiceOptions, ServiceResolver
from escrowctl.contract.json import Number
from escrowctl.contract.record import Pointers
from escrowctl.journal.chain import EMPTY_HEAD
from escrowctl.journal.opening import find_place, open_journal
from escrowctl.journal.storage import head_of


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

    resolver = ServiceResolver(ServiceOptions(profile="acme"), {}, Folders({"ESCROWCTL_HOME": str(home)}))
    found = resolver.build_service(choice := resolver.choose(), resolver.find_key(choice))

    assert found.key.reveal() == KEY
    assert found == Service(
        name="acme",
        origin=Origin("https", "escrow.example.com", 443, "/base"),
        identity="acme",
        key=found.key,
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
    "line",
    [
        "reed_only = true",
        "status.relesed = ['x']",
        "read_only = 'true'",
        "timeout = nan",
        "caps.EUR = '0.001'",
        "caps.XTS = '5'",
        "reply.id = 'ref'",
        "status.released = 'released'",
        "[profiles.'a b']\nbase_url = 'https://x.example.com'",
        "[profile.a]\nmode = 'test'",
        "[profiles.b]\nmode = 'test'",
        "line = ",
    ],
)
def test_config_mistake_is_reported_with_its_setting(profile: Profile, run: Run, line: str) -> None:
    server = profile(line)

    result = run("tx", "get", "tx_1")

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert re.findall(r"\w+", line)[0] in result.err


LOST = "00000000-0000-4000-8000-000000000000"


def make_journal(home: Path) -> None:
    """Make the journal as a first write does."""
    open_journal(find_place(home / "state"), now=lambda: datetime(2026, 11, 21, tzinfo=UTC)).close()


@pytest.mark.parametrize(("line", "by"), [(CREATE, "profile"), (RELEASE, "variable")], ids=["create", "release"])
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
    assert all(fact in result.error["message"] for fact in (here, LOST))
    with closing(open_journal(find_place(home / "state"), now=lambda: datetime.now(UTC), read_only=True)) as journal:
        assert head_of(journal.storage) == EMPTY_HEAD


def test_live_write_is_sent_with_the_expected_journal(profile: Profile, run: Run, home: Path) -> None:
    make_journal(home)
    here = run("config", "path", "--json").json["journal_id"]
    server = profile('mode = "live"', f'journal_id = "{here}"')

    assert run(*CREATE, environ={"ESCROWCTL_JOURNAL_ID": here}).code == 0
    assert len(server.writes) == 1


def test_test_write_is_not_bound_to_a_journal(profile: Profile, run: Run) -> None:
    profile('mode = "test"', f'journal_id = "{LOST}"')

    assert [run(*line, environ={"CI": "true"}).code for line in (CREATE, ("--sandbox", *CREATE))] == [0, 0]


DECISION = ("journal", "resolve", "j1", "--not-applied", "--reason", "x", "--allow-unreadable", "--yes")
USES = {
    "list": ("journal", "list", "--unknown"),
    "entry": ("journal", "show", "j1"),
    "export": ("journal", "export"),
    "verify": ("journal", "verify"),
    "batches": ("batch", "list"),
    "register": ("tx", "list", "--local", "--over", "7d"),
    "decision": DECISION,
}


@pytest.mark.parametrize("state", ["another", "lost"])
@pytest.mark.parametrize("line", USES.values(), ids=USES)
def test_another_journal_is_not_used(profile: Profile, run: Run, home: Path, line: tuple[str, ...], state: str) -> None:
    profile('mode = "live"', f'journal_id = "{LOST}"')
    if state == "another":
        make_journal(home)

    refused = run(*line, "--json")

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


API = ("api", "POST", "/refunds")


@pytest.mark.parametrize("line", [CREATE, RELEASE[:3], (*RELEASE[:3], "tx_2"), UPDATE, WEBHOOK, API], ids=" ".join)
def test_read_only_profile_refuses_before_it_reads_or_asks(line: tuple[str, ...], profile: Profile, run: Run) -> None:
    server = profile("read_only = true", 'mode = "live"')

    result = run(*line, terminal=True)

    assert (result.code, result.out, server.seen) == (15 if "tx_2" in line else 5, "", [])
    assert "\n> " not in result.err


def test_list_without_a_journal_says_so(profile: Profile, run: Run, home: Path) -> None:
    profile('mode = "live"')

    empty = run("journal", "list", "--json")

    assert (empty.code, empty.json, str(home / "state" / "journal.db") in empty.err) == (0, [], True)


def test_money_held_too_long_is_not_looked_for_without_a_journal(profile: Profile, run: Run) -> None:
    profile('mode = "live"')

    refused = run("tx", "list", "--local", "--over", "7d", "--json")

    assert (refused.code, refused.out, refused.error["code"]) == (6, "", "not_found")
