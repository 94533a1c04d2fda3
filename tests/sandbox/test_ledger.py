"""The ledger: after every step, all money that was paid in is held or paid out."""

import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import httpx
import internals
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from escrowctl.sandbox.ledger import Balance
from escrowctl.sandbox.service import Sandbox, open_sandbox
from sandbox.conftest import balances
from sandbox.racer import client_of

UNIT = Decimal("0.0001")


def create(client: httpx.Client, amount: str, currency: str = "USD") -> str:
    body = f'{{"amount":{amount},"currency":"{currency}"}}'.encode()
    reply = client.post("/transactions", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 200
    return str(reply.json()["id"])


def test_create_and_release_post_both_entries_of_a_move(client: httpx.Client, folder: Path) -> None:
    made = create(client, "12.50")
    client.put(f"/transactions/{made}/release")

    with closing(sqlite3.connect(folder / "sandbox.db")) as other:
        entries = other.execute("SELECT transaction_id, move, account, currency, units FROM ledger_entries")
        assert entries.fetchall() == [
            (made, "create", "payer:usr_PAYER001", "USD", -125_000),
            (made, "create", "hold", "USD", 125_000),
            (made, "release", "hold", "USD", -125_000),
            (made, "release", "payee:usr_PAYEE001", "USD", 125_000),
        ]


def test_ledger_sums_beyond_63_bits_are_exact(sandbox: Sandbox, client: httpx.Client) -> None:
    for _ in range(12):
        create(client, "99999999999999.9999")

    total = 12 * (10**18 - 1)
    assert total > 2**63
    assert balances(sandbox) == (Balance("USD", 24, 0, total, total),)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET units = 1",
        "DELETE FROM ledger_entries",
        # A second move out of the hold, and a move that is posted twice.
        *(
            f"INSERT INTO ledger_entries SELECT 99, transaction_id, '{move}', account, currency, units, ''"
            " FROM ledger_entries WHERE account = 'hold' AND units < 0"
            for move in ("create", "release", "another")
        ),
        "INSERT INTO ledger_entries SELECT 99, transaction_id, move, account, currency, units, ''"
        " FROM ledger_entries WHERE account = 'payer:usr_PAYER001'",
    ],
)
def test_ledger_is_append_only_and_refuses_a_second_move(client: httpx.Client, folder: Path, statement: str) -> None:
    client.put(f"/transactions/{create(client, '1')}/release")

    with closing(sqlite3.connect(folder / "sandbox.db")) as other, pytest.raises(sqlite3.IntegrityError):
        other.execute(statement)


@pytest.mark.parametrize(
    "damage",
    [
        "INSERT INTO ledger_entries VALUES (99, '{id}', 'gift', 'payee:usr_PAYEE001', 'USD', 1, '')",
        "INSERT INTO ledger_entries VALUES (99, '{id}', 'x', 'hold', 'USD', 5, ''),"
        " (100, '{id}', 'x', 'payer:usr_PAYER001', 'USD', -5, '')",
        "UPDATE transactions SET document = json_set(document, '$.status', 'released')",
        "UPDATE transactions SET document = json_set(document, '$.amount', 2)",
    ],
)
def test_ledger_check_finds_created_or_lost_money(
    sandbox: Sandbox, client: httpx.Client, folder: Path, damage: str
) -> None:
    made = create(client, "1")
    assert [balance.is_consistent for balance in balances(sandbox)] == [True]

    with closing(sqlite3.connect(folder / "sandbox.db")) as other, other:
        other.execute(damage.format(id=made))

    assert [balance.is_consistent for balance in balances(sandbox)] == [False]


def test_create_on_a_full_disk_is_rolled_back(sandbox: Sandbox, client: httpx.Client, folder: Path) -> None:
    made = create(client, "1")
    connection = internals.store_connection(sandbox.store)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")

    statuses = []
    while 500 not in statuses:
        body = {"amount": 1, "currency": "USD", "note": "x" * 5000}
        statuses.append(client.post("/transactions", json=body).status_code)

    connection.execute("PRAGMA max_page_count = 1000000")
    assert len(client.get("/transactions").json()["data"]) == len(statuses)
    assert {balance.is_consistent for balance in balances(sandbox)} == {True}
    assert client.put(f"/transactions/{made}/release").status_code == 200


LEGAL: dict[str, tuple[str, ...]] = {
    "held": ("released", "releasing", "disputed", "refunded"),
    "releasing": ("released",),
    "disputed": ("held", "refunded"),
    "released": (),
    "refunded": (),
}
"""The moves of `sandbox move`, written by hand."""

MOVES = "http://sandbox.invalid/sandbox/moves"


class LedgerMachine(RuleBasedStateMachine):
    """Creates, releases, moves and refusals in any order, compared with dictionaries as the model."""

    escrows = Bundle("escrows")

    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.TemporaryDirectory()
        self.escrowed: dict[str, tuple[str, Decimal]] = {}
        self.states: dict[str, str] = {}
        self.open()

    def open(self) -> None:
        self.sandbox = open_sandbox(Path(self.home.name) / "sandbox", now=lambda: datetime.now(UTC))
        self.client = client_of(self.sandbox)

    @rule(
        target=escrows,
        amount=st.decimals("0.0001", "99999999999999.9999", places=4),
        currency=st.sampled_from(["USD", "EUR", "JPY"]),
    )
    def create_one(self, amount: Decimal, currency: str) -> str:
        made = create(self.client, f"{amount:f}", currency)
        assert made not in self.states
        self.escrowed[made], self.states[made] = (currency, amount), "held"
        return made

    @rule(escrow=escrows)
    def release_one(self, escrow: str) -> None:
        reply = self.client.put(f"/transactions/{escrow}/release")
        assert reply.status_code == (200 if self.states[escrow] == "held" else 409)
        if reply.status_code == 200:
            self.states[escrow] = "released"

    @rule(escrow=escrows, status=st.sampled_from([*LEGAL, "created", ""]))
    def move_one(self, escrow: str, status: str) -> None:
        reply = self.client.post(MOVES, json={"id": escrow, "status": status})
        assert reply.status_code == (200 if status in LEGAL[self.states[escrow]] else 409 if status in LEGAL else 400)
        if reply.status_code == 200:
            self.states[escrow] = status

    @rule(escrow=escrows)
    def read_one(self, escrow: str) -> None:
        assert self.client.get(f"/transactions/{escrow}").json()["status"] == self.states[escrow]

    @rule(escrow=escrows)
    def refuse_an_update(self, escrow: str) -> None:
        assert self.client.put(f"/transactions/{escrow}", json={"amount": 1}).status_code == 400

    @rule(target=escrows, body=st.sampled_from([b"", b"{}", b'{"amount":0,"currency":"USD"}', b'{"amount":1}']))
    def refuse_a_create(self, body: bytes) -> object:
        headers = {"Content-Type": "application/json"}
        assert self.client.post("/transactions", content=body, headers=headers).status_code == 400
        return multiple()

    @rule()
    def reopen(self) -> None:
        key = self.sandbox.key
        self.client.close()
        self.sandbox.close()
        self.open()
        assert self.sandbox.key == key

    @invariant()
    def the_ledger_and_the_model_agree(self) -> None:
        expected: dict[str, Decimal] = {}
        for escrow, (currency, amount) in self.escrowed.items():
            is_held = self.states[escrow] in ("held", "releasing", "disputed")
            expected[currency] = expected.get(currency, Decimal(0)) + amount * is_held
        found = balances(self.sandbox)
        assert all(balance.is_consistent for balance in found)
        assert {balance.currency: balance.hold_balance * UNIT for balance in found} == expected

    def teardown(self) -> None:
        self.client.close()
        self.sandbox.close()
        self.home.cleanup()


FEW_STEPS = settings(
    max_examples=20,
    stateful_step_count=25,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
MANY_STEPS = settings(FEW_STEPS, max_examples=400, stateful_step_count=50, derandomize=False, print_blob=True)


@pytest.mark.slow
def test_ledger_and_model_agree_after_every_step() -> None:
    run_state_machine_as_test(LedgerMachine, settings=FEW_STEPS)


@pytest.mark.slow
@pytest.mark.long
def test_ledger_and_model_agree_in_a_long_run() -> None:
    run_state_machine_as_test(LedgerMachine, settings=MANY_STEPS)
