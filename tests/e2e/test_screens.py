"""Ten situations of an operator: what is shown at 80 and at 120 columns, kept in `screens/`; and what is true after."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from conftest import Serve
from services.service import ExampleService, Reply, ok
from wire_server import Behave, WireServer, answering, http_reply

from e2e.escrow_service import EscrowService, Record
from e2e.screen import FOLDER, Log, Screen, Settler, compare, make_program
from e2e.script import SECONDS
from escrowctl.main import main
from escrowctl.runtime import Runtime

pytestmark = pytest.mark.slow

KEY = "sk_live_0123456789abcdef"


class Desk:
    """One operator's machine: screens of one width, a home, a clock, and the services that it reaches."""

    def __init__(self, home: Path, columns: int, serve: Serve) -> None:
        self.home = home
        self.program, self.clock = make_program(home)
        self.serve = serve
        self._columns = columns
        self._settler = Settler(home)
        self._screens: list[Screen] = []

    def screen(self) -> Screen:
        screen = Screen(self.program, self.clock, self._settler, self._columns)
        self._screens.append(screen)
        return screen

    def log(self, **variables: str) -> Log:
        return Log(self.program.with_environ(**variables), self.clock, self._settler)

    def profile(self, behave: Behave, *lines: str, name: str = "acme-live", mode: str = "live") -> WireServer:
        """Write a profile with a private key file for a server that behaves like this."""
        server = self.serve(behave)
        folder = self.program.config
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "acme.key").touch(mode=0o600)
        (folder / "acme.key").write_text(f"{KEY}\n")
        settings = (f'base_url = "{server.base_url}"', f'mode = "{mode}"', 'api_key_file = "acme.key"', *lines)
        (folder / "config.toml").write_text("\n".join([f"[profiles.{name}]", *settings, ""]))
        return server

    @property
    def too_wide(self) -> list[str]:
        return [line for screen in self._screens for line in screen.too_wide]

    @property
    def texts(self) -> list[str]:
        return [screen.text for screen in self._screens]


def held(resource_id: str, amount: int = 2500, currency: str = "EUR") -> Record:
    return {"id": resource_id, "status": "held", "amount": amount, "currency": currency}


def first_minutes(desk: Desk) -> None:
    screen = desk.screen()
    create = "tx create --amount 100 --currency USD"
    screen.type(f"escrowctl {create}", ends=4)
    assert not desk.program.config.exists()
    screen.type(f"escrowctl --sandbox {create}")
    escrow = screen.find(r"tx_[0-9A-Z]{8}")
    screen.type(f"escrowctl --sandbox tx release {escrow}", escrow)
    screen.type(f"escrowctl --sandbox tx release {escrow} --yes", ends=7)
    screen.type("escrowctl --sandbox tx create --amount 1,000 --currency USD", ends=2)
    screen.type("escrowctl --sandbox tx list")
    assert desk.program.journal("--sandbox") == [("create_transaction", "done"), ("release_transaction", "done")]


def login_and_create(desk: Desk) -> None:
    live, test = desk.serve(EscrowService(KEY)), desk.serve(EscrowService("sk_test_of_the_test_desk"))
    screen = desk.screen()
    answers = (live.base_url, "live", "acme-live", "sk_live_of_another_desk", KEY)
    screen.type("escrowctl auth login", *answers)
    create = "tx create --amount 2500 --currency EUR --reference order-8841"
    screen.type(f"escrowctl {create}")
    screen.type(f"escrowctl auth login --base-url {test.base_url} --mode test -p acme-test", "sk_test_of_the_test_desk")
    screen.type(f"escrowctl -p acme-test {create}")
    screen.type("escrowctl auth status")
    assert [len(server.writes) for server in (live, test)] == [1, 1]
    assert desk.program.journal() == [("create_transaction", "done")] * 2


def forty_releases(desk: Desk) -> None:
    records = [held(f"tx_{8800 + n}", 100 + 25 * n, "EUR" if n % 4 else "USD") for n in range(40)]
    server = desk.profile(EscrowService(KEY, *records), 'status.released = ["released"]')
    (desk.home / "ids.txt").write_text("".join(f"{record['id']}\n" for record in records[:6]))
    (desk.home / "ids.csv").write_text("".join(f"{record['id']}\n" for record in [{"id": "id"}, *records]))
    screen = desk.screen()
    screen.type("escrowctl -p acme-live tx release - < ids.txt", ends=3)
    screen.type("escrowctl -p acme-live tx release $(cat ids.txt)", "6")
    screen.type("escrowctl -p acme-live batch release ids.csv", ends=7)
    screen.type("escrowctl -p acme-live batch release ids.csv --skip-done", "34")
    assert sorted(seen.target.split("/")[4] for seen in server.writes) == sorted(record["id"] for record in records)
    assert desk.program.journal() == [("release_transaction", "done")] * 40


def ci_job(desk: Desk, columns: int) -> Log:
    service = EscrowService(KEY)
    server = desk.profile(service, 'status.released = ["released"]')
    journal_id = desk.program.run("journal", "init", "-q").out.strip()
    log = desk.log(
        COLUMNS=str(columns),
        CI="true",
        GITHUB_ACTIONS="true",
        GITHUB_RUN_ID="19846127710",
        RUNNER_OS="Linux",
        ESCROWCTL_PROFILE="acme-live",
        ESCROWCTL_JOURNAL_ID=journal_id,
    )
    create = "escrowctl tx create --amount 2500 --currency EUR --idempotency-key order-8841 --json"
    log.type(create)
    log.type(create)
    log.type(f"{create} -q")
    wait = "escrowctl tx wait tx_9001 --for released --fail-on disputed"
    log.type(f"{wait} --deadline 1s --json", ends=13)
    service.records["tx_9001"]["status"] = "released"
    log.type(f"{wait} --json")
    service.records["tx_9001"]["status"] = "disputed"
    log.type(f"{wait} --json", ends=16)
    log.type(wait, ends=16)
    assert [seen.body for seen in server.writes] == [b'{"amount":2500,"currency":"EUR"}']
    assert desk.program.journal() == [("create_transaction", "done")]
    return log


def timeout_at_night(desk: Desk) -> None:
    service = EscrowService(KEY, held("tx_88F2"))
    service.is_silent = True
    server = desk.profile(service, "timeout = 0.5")
    screen = desk.screen()
    create = 'escrowctl -p acme-live tx create --amount 2500 --currency EUR --reason "order 8841"'
    screen.type(create, ends=12)
    screen.type(create, ends=12)
    desk.clock.advance(minutes=2)
    resolve = "escrowctl -p acme-live journal resolve"
    screen.type(f"{resolve} j1", ends=12)
    ticket = '--reason "support ticket 5512"'
    screen.type(f"{resolve} j1 --applied --id tx_88F2 {ticket}")
    screen.type("escrowctl -p acme-live tx create --amount 900 --currency EUR", ends=12)
    screen.type(f"{resolve} j2 --not-applied {ticket}")
    screen.type("escrowctl -p acme-live tx create --amount 75.50 --currency EUR", ends=12)
    service.is_silent = False
    screen.type(f"{resolve} j3 --resend {ticket}", "75.50")
    screen.type("escrowctl -p acme-live journal list")
    assert len(server.writes) == 4
    assert desk.program.journal() == [("create_transaction", state) for state in ["done", "not_applied", "done"]]


def two_terminals(desk: Desk) -> None:
    service = EscrowService(KEY, held("tx_88F2"), held("tx_88F3", 900))
    server = desk.profile(service, 'status.released = ["released"]')
    first, second = desk.screen(), desk.screen()
    release = "escrowctl -p acme-live tx release"
    asked = first.begin(f"{release} tx_88F2")
    asked.wait_for("\r\n> ")
    second.type(f"{release} tx_88F2", "2500")
    desk.clock.advance(seconds=5)
    asked.process.send("2500\n")
    first.end(asked, ends=7)

    service.received.clear()
    service.may_write.clear()
    asked = first.begin(f"{release} tx_88F3")
    asked.answer("\r\n> ", "900\n")
    assert service.received.wait(SECONDS)
    late = second.begin(f"{release} tx_88F3")
    late.answer("\r\n> ", "900\n")
    late.wait_for("escrowctl waits")
    service.may_write.set()
    first.end(asked)
    desk.clock.advance(seconds=5)
    second.end(late, ends=7)
    assert [seen.target.split("/")[4] for seen in server.writes] == ["tx_88F2", "tx_88F3"]
    assert desk.program.journal() == [("release_transaction", "done")] * 2


UNUSUAL = '{"escrowNo":"A-10977","escrowState":"%s","phase":"OPEN","value":{"amt":100.00,"ccy":"USD"}}'


def unknown_fields(desk: Desk) -> None:
    routes = {
        "GET /webhooks": ok("[]"),
        "POST /transactions": ok(UNUSUAL % "AWAITING_DEPOSIT"),
        "GET /transactions/A-10977": ok(UNUSUAL % "AWAITING_DEPOSIT"),
        "PUT /transactions/A-10977/release": Reply("204 No Content"),
    }
    after = {"GET /transactions/A-10977": ok(UNUSUAL % "PAYOUT_QUEUED")}
    server = desk.profile(ExampleService("unusual", routes, (), after=after).behave(), name="acme-test", mode="test")
    screen = desk.screen()
    acme = "escrowctl -p acme-test"
    screen.type(f"{acme} tx create --amount 100 --currency USD", ends=12)
    screen.type(f"{acme} config set reply.id /escrowNo && {acme} journal resolve j1")
    screen.type(f"{acme} doctor --tx A-10977 --save")
    screen.type(f"{acme} config set reply.status /escrowState")
    release = "tx release A-10977 --yes --expect-amount 100 --expect-currency USD"
    screen.type(f"{acme} {release}")
    screen.type(f"{acme} tx wait A-10977 --for released --deadline 1s", ends=2)
    screen.type(f"{acme} tx wait A-10977 --for SETTLED --deadline 1s", ends=13)
    assert len(server.writes) == 2
    assert desk.program.journal() == [("create_transaction", "done"), ("release_transaction", "unconfirmed")]


def doctor(desk: Desk) -> None:
    lists = {"GET /webhooks": ok("[]"), "GET /transactions": ok("[]")}
    answer = ExampleService("elsewhere", lists, (), prefix="/v1").behave()
    desk.profile(answer, "timeout = 0.5", name="acme-test", mode="test")
    config = desk.program.config / "config.toml"
    (desk.program.config / "acme.key").chmod(0o644)
    screen = desk.screen()
    screen.type("escrowctl -p acme-test doctor", ends=16)
    screen.type(f"chmod 600 {desk.program.config}/acme.key")
    screen.type("escrowctl -p acme-test doctor", ends=16)
    screen.type("escrowctl -p acme-test config set api_prefix /v1")
    screen.type("escrowctl -p acme-test doctor")
    assert desk.program.journal() == []
    config.write_text(config.read_text().replace("timeout", "timeuot"))
    screen.type("escrowctl -p acme-test doctor", ends=16)


def month_end(desk: Desk) -> None:
    service = EscrowService(KEY)
    desk.profile(service, 'status.released = ["released"]', "timeout = 0.5")
    fill_two_months(desk, service)
    screen = desk.screen()
    desk.clock.set(datetime(2026, 11, 30, 17, 5, tzinfo=UTC))
    screen.type("escrowctl -p acme-live journal totals")
    screen.type("escrowctl -p acme-live journal totals --since 2026-11-01")
    screen.type("escrowctl -p acme-live journal list")
    screen.type("escrowctl -p acme-live tx list --local")
    screen.type("escrowctl -p acme-live tx list --local --refresh --over 7d", ends=16)
    assert len(service.records) == 11
    assert Counter(desk.program.journal()) == {
        ("create_transaction", "done"): 11,
        ("create_transaction", "unknown"): 1,
        ("release_transaction", "done"): 8,
        ("release_transaction", "unknown"): 1,
    }


def fill_two_months(desk: Desk, service: EscrowService) -> None:
    """Create twelve escrows in October and November and release nine; one create and one release have no reply."""
    at = datetime(2026, 10, 3, 9, 30, tzinfo=UTC)
    for number in range(1, 13):
        service.is_silent = number == 11
        amount, currency = f"{number * 1250}.25", "EUR" if number % 3 else "USD"
        run_at(desk, at, "tx", "create", "--amount", amount, "--currency", currency, "--reference", f"order-{number}")
        service.is_silent = number == 8
        if number not in (7, 11, 12):
            escrow = f"tx_{9000 + number}"
            run_at(desk, at + timedelta(days=2), "tx", "release", escrow, "--yes")
        at += timedelta(days=5)
    service.is_silent = False


def run_at(desk: Desk, at: datetime, *words: str) -> None:
    """Run a command in this process, at another time."""
    runtime = Runtime(
        environ=desk.program.environ, stdin=StringIO(), stdout=StringIO(), stderr=StringIO(), now=lambda: at
    )
    with pytest.MonkeyPatch.context() as process:
        # The platform's folders are looked up in the environment of the process.
        process.setenv("HOME", desk.program.environ["HOME"])
        main(("-p", "acme-live", *words), runtime)


def three_field_errors(desk: Desk) -> None:
    refusal = (
        b'{"type":"https://escrow.example.com/errors/invalid","title":"Validation failed","errors":['
        b'{"field":"amount","message":"must be at least 500 for EUR"},'
        b'{"field":"currency","message":"EUR is not enabled for this account; ask support to enable it"},'
        b'{"field":"payee.iban","message":"is required"}]}'
    )
    server = desk.profile(answering(http_reply("422 Unprocessable Entity", refusal, "X-Request-Id: req_7f3a9c2e")))
    screen = desk.screen()
    create = "escrowctl -p acme-live tx create --amount 250 --currency EUR"
    screen.type(create, ends=8)
    screen.type(f"{create} --raw", ends=8)
    screen.type(f"{create} --json", ends=8)
    assert len(server.writes) == 3
    assert desk.program.journal() == [("create_transaction", "refused")] * 3


SITUATIONS: dict[str, Callable[[Desk], None]] = {
    "first-minutes": first_minutes,
    "login-and-create": login_and_create,
    "forty-releases": forty_releases,
    "timeout-at-night": timeout_at_night,
    "two-terminals": two_terminals,
    "unknown-fields": unknown_fields,
    "doctor": doctor,
    "month-end": month_end,
    "three-field-errors": three_field_errors,
}
WIDTHS = (80, 120)


@pytest.fixture
def desk(columns: int, serve: Serve) -> Iterator[Desk]:
    """A desk whose home has a name of always the same length, so that lines with it break where they always do."""
    home = Path(tempfile.mkdtemp(prefix="o", dir="/tmp"))
    yield Desk(home, columns, serve)
    shutil.rmtree(home)


@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize("columns", WIDTHS)
def test_screen_is_as_kept(name: str, columns: int, desk: Desk) -> None:
    SITUATIONS[name](desk)

    compare(f"{name}.{columns}", *desk.texts)
    assert desk.too_wide == []


@pytest.mark.parametrize("columns", WIDTHS)
def test_log_of_a_job_is_as_kept_at_any_width(columns: int, desk: Desk) -> None:
    log = ci_job(desk, columns)

    compare("ci-job.pipe", log.text)


def test_each_kept_screen_belongs_to_a_situation() -> None:
    kept = sorted(path.name for path in FOLDER.iterdir())

    assert kept == sorted(["ci-job.pipe.txt", *(f"{name}.{width}.txt" for name in SITUATIONS for width in WIDTHS)])
