"""The client's writes, each against every variant of the sandbox: what an operator does, and what the ledger has then.

No test looks at its variant, except for whether the service recognises an Idempotency-Key. After each test
the fixture `client` compares journal and ledger.
"""

from typing import Any

import pytest

from services.variants import Client

pytestmark = [
    pytest.mark.filterwarnings("ignore:send_bytes:DeprecationWarning"),
    pytest.mark.representative("prefix=/v1,fields=foreign,*"),
]

MONEY = ("--fields", "id,status,amount,currency")


def read(client: Client, escrow: str) -> Any:
    found = client.run("tx", "get", escrow, *MONEY, "--json")
    assert found.code == 0, found.err
    return found.json


# Creates


def test_create_holds_the_money_and_is_read_back(client: Client) -> None:
    made = client.create(*MONEY, "--data", '{"order": "8841"}', amount="99.95")

    assert made.code == 0, made.err
    assert made.json == {"id": client.read_ledger().created[0], "status": "held", "amount": 99.95, "currency": "USD"}
    assert read(client, made.json["id"]) == made.json
    assert client.run("tx", "get", made.json["id"], "--json").json.items() >= {"order": "8841"}.items()


def test_reference_is_created_once(client: Client) -> None:
    first, again, other = (client.create("--reference", reference) for reference in ("a", "a", "b"))

    assert ([first.code, again.code, other.code], client.count_moves()) == ([0, 7, 0], (2, 0))
    assert client.create("--reference", "a", amount="101").code == 7


def test_idempotency_key_again_shows_the_first_result(client: Client) -> None:
    first = client.create_id("--idempotency-key", "order-8841")

    assert client.create_id("--idempotency-key", "order-8841") == first
    assert client.create("--idempotency-key", "order-8841", amount="101").code == 7
    assert [client.release(first, "--idempotency-key", "release-8841").code for _ in range(2)] == [0, 0]
    assert client.read_ledger() == ([first], [first])


def test_refused_create_shows_why_and_can_be_corrected(client: Client) -> None:
    refused = client.create("--reference", "a", amount="4.02")

    assert (refused.code, refused.error["outcome"], refused.error["http_status"]) == (8, "refused", 402)
    assert "The amount 4.02 is refused in every sandbox" in refused.error["message"]
    assert client.create("--reference", "a", amount="4.03").code == 0
    assert client.count_moves() == (1, 0)


def test_flawed_body_is_refused_by_the_service(client: Client) -> None:
    refused = client.create("--data", '{"payer": "nobody"}')

    assert (refused.code, refused.error["outcome"], refused.error["http_status"]) == (8, "refused", 400)
    assert client.count_moves() == (0, 0)


def test_throttled_create_does_not_exist(client: Client) -> None:
    throttled = client.create(amount="4.29")

    assert (throttled.code, throttled.error["outcome"]) == (9, "refused")
    assert client.count_moves() == (0, 0)


def test_lost_create_is_found_and_recorded(client: Client) -> None:
    client.set_fault("create=drop-reply")

    lost = client.create()

    assert client.count_moves() == (1, 0)
    if client.deduplicates:
        assert lost.code == 0
        return
    assert (lost.code, lost.error["outcome"]) == (12, "unknown")
    assert client.create().code == 12
    # An equal amount proves nothing, and it speaks against "not applied".
    (found,) = client.read_ledger().created
    unsettled = client.resolve(lost.error["entry"])
    assert (unsettled.code, found in unsettled.err) == (12, True)
    assert client.resolve(lost.error["entry"], "--not-applied", "--reason", "guess").code == 3
    assert client.resolve(lost.error["entry"], "--applied", "--id", found, "--reason", "seen").code == 0
    assert client.count_moves() == (1, 0)


def test_unknown_create_that_never_was_is_sent_again_after_a_decision(client: Client) -> None:
    client.set_fault("create=reset")

    lost = client.create("--reference", "a")

    if not client.deduplicates:
        assert (lost.code, lost.error["outcome"], client.count_moves()) == (12, "unknown", (0, 0))
        assert client.create("--reference", "a").code == 12
        assert client.resolve(lost.error["entry"], "--not-applied", "--reason", "support: no").code == 0
        assert client.create("--reference", "a").code == 0
    assert client.count_moves() == (1, 0)


def test_unknown_create_does_not_stop_one_that_is_allowed(client: Client) -> None:
    client.set_fault("create=500")
    lost = client.create()

    allowed = client.create("--allow-duplicate", lost.error["entry"]) if lost.code else client.create()

    assert (allowed.code, client.count_moves()) == (0, (2, 0))
    if lost.code:
        first = client.read_ledger().created[0]
        assert client.resolve(lost.error["entry"], "--applied", "--id", first, "--reason", "seen").code == 0


def test_unknown_create_is_resent_under_its_key_by_decision(client: Client) -> None:
    # What a service that forgets keys has carried out must not be sent again: there the create never arrives.
    client.set_fault("create=bad-json" if client.deduplicates else "create=reset")
    lost = client.create()

    resent = client.resolve(lost.error["entry"], "--resend", "--yes", "--reason", "support: send it again")

    assert (lost.code, resent.code, client.count_moves()) == (12, 0, (1, 0)), resent.err


def test_caps_and_dry_runs_send_nothing(client: Client) -> None:
    assert client.run("config", "set", "caps.USD", "150").code == 0

    codes = [client.create(*words).code for words in (("--dry-run",), (), ("--dry-run",), ())]

    assert (codes, client.count_moves()) == ([0, 0, 5, 5], (1, 0))


# Releases


def test_release_is_verified_and_happens_once(client: Client) -> None:
    escrow = client.create_id()
    assert client.release(escrow, "--expect-currency", "EUR").code == 3
    assert client.release(escrow, "--dry-run").code == 0
    assert client.count_moves() == (1, 0)

    released = client.release(escrow, "--expect-amount", "100", "--expect-currency", "USD")

    assert released.code == 0, released.err
    assert [released.json[name] for name in ("status_before", "status_after", "verified")] == ["held", "released", True]
    assert [client.release(escrow, *more).code for more in ((), ("--skip-released",))] == [7, 0]
    assert client.count_moves() == (1, 1)


def test_release_at_a_terminal_shows_the_money_and_needs_the_id(client: Client) -> None:
    escrow = client.create_id()

    typed = [client.run("tx", "release", escrow, terminal=True, stdin=f"{word}\n") for word in ("no", escrow)]

    assert ([one.code for one in typed], "100 USD" in typed[0].err) == ([3, 0], True)
    assert client.count_moves() == (1, 1)


@pytest.mark.parametrize("escrow", ["tx_DISPUTED", "tx_REFUNDED"])
def test_release_that_the_service_refuses_is_not_repeated(client: Client, escrow: str) -> None:
    refused = client.release(escrow)

    if client.deduplicates:
        # There a 409 may also say that the first request is still being worked on.
        assert (refused.code, refused.error["outcome"]) == (12, "unknown")
        assert client.resolve(refused.error["entry"], "--not-applied", "--reason", "support: no").code == 0
    else:
        assert (refused.code, refused.error["outcome"]) == (7, "refused")
    assert client.release("tx_00000000").code == 6
    assert client.count_moves() == (0, 0)


def test_escrow_that_was_released_elsewhere_is_not_released(client: Client) -> None:
    assert [client.release("tx_RELEASED", *more).code for more in ((), ("--skip-released",))] == [7, 0]
    assert client.count_moves() == (0, 0)


def test_queued_release_is_not_called_released_before_it_is(client: Client) -> None:
    escrow = client.create_id(amount="2.02")

    queued = client.release(escrow)

    assert (queued.code, queued.json["status_after"], queued.json["verified"]) == (0, "releasing", False)
    assert client.release(escrow).code == 7
    assert client.run("sandbox", "move", escrow, "released").code == 0
    assert client.resolve("j2").json["state"] == "done"


def test_release_waits_until_the_service_has_released_it(client: Client) -> None:
    escrow = client.create_id(amount="2.02")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            assert client.run("sandbox", "move", escrow, "released").code == 0

    released = client.run("tx", "release", escrow, "--yes", "--wait", "--json", sleep=sleep)

    assert (released.code, released.json["status_after"], released.json["verified"]) == (0, "released", True)
    assert len(slept) == 2


def test_lost_release_is_settled_by_reading(client: Client) -> None:
    escrow = client.create_id()
    client.set_fault("release=drop-reply")

    lost = client.release(escrow)

    if not client.deduplicates:
        assert (lost.code, lost.error["outcome"]) == (12, "unknown")
        assert client.release(escrow).code == 12
        assert client.resolve(lost.error["entry"], "--not-applied", "--reason", "guess").code == 3
        assert client.resolve(lost.error["entry"]).code == 0
    assert client.release(escrow).code == 7
    assert client.count_moves() == (1, 1)


def test_release_that_never_arrived_is_sent_again_after_a_decision(client: Client) -> None:
    escrow = client.create_id()
    client.set_fault("release=reset")

    lost = client.release(escrow)

    if not client.deduplicates:
        assert (lost.code, client.count_moves()) == (12, (1, 0))
        assert client.resolve(lost.error["entry"]).code == 12
        assert client.resolve(lost.error["entry"], "--applied", "--reason", "guess").code == 3
        assert client.resolve(lost.error["entry"], "--not-applied", "--reason", "support: no").code == 0
        assert client.release(escrow).code == 0
    assert client.count_moves() == (1, 1)


def test_several_releases_count_each_outcome(client: Client) -> None:
    escrows = [client.create_id(amount=amount) for amount in ("1", "2", "3")]
    assert client.release(escrows[0]).code == 0
    client.set_fault("release=drop-reply")

    several = client.release(*escrows, "tx_00000000")

    # Released before, lost (or sent again under its key), released, not found.
    assert several.code == (15 if client.deduplicates else 12)
    assert sorted(client.read_ledger().released) == sorted(escrows)
    for entry in client.run("journal", "list", "--unknown", "-q").out.split():
        assert client.resolve(entry).code == 0
    assert client.release(*escrows, "--skip-released").code == 0
    assert client.count_moves() == (3, 3)


# Other writes


def test_update_is_refused_and_changes_nothing(client: Client) -> None:
    escrow = client.create_id()

    refused = client.run("tx", "update", escrow, "--data", '{"note": "x"}', "--yes", "--json")
    unknown = client.run("tx", "update", "tx_00000000", "--data", "{}", "--yes", "--json")

    assert (refused.code, refused.error["outcome"], refused.error["http_status"]) == (8, "refused", 400)
    assert (unknown.code, read(client, escrow)["status"]) == (6, "held")


def test_lost_update_blocks_its_repetition_until_a_decision(client: Client) -> None:
    line = ("tx", "update", client.create_id(), "--data", '{"note": "x"}', "--yes", "--json")
    client.set_fault("update=drop-reply")

    lost = client.run(*line)

    assert (lost.code, lost.error["outcome"]) == (12, "unknown")
    assert [client.run(*line).code, client.resolve(lost.error["entry"]).code] == [12, 12]
    assert client.resolve(lost.error["entry"], "--not-applied", "--reason", "support: no").code == 0
    assert client.run(*line).code == 8


def test_webhook_is_registered_and_listed(client: Client) -> None:
    made = client.run("webhook", "create", "--url", "http://127.0.0.1:9/hooks", "-q")

    assert made.code == 0, made.err
    assert client.run("webhook", "list").out.startswith(f"{made.out.strip()}\tenabled\thttp://127.0.0.1:9/hooks\t")


def test_lost_webhook_is_found_and_recorded(client: Client) -> None:
    client.set_fault("webhook=drop-reply")

    lost = client.run("webhook", "create", "--url", "http://127.0.0.1:9/hooks", "--json")

    (made,) = client.run("webhook", "list", "-q").out.split()
    if client.deduplicates:
        assert lost.code == 0
        return
    assert (lost.code, lost.error["outcome"]) == (12, "unknown")
    assert client.resolve(lost.error["entry"]).code == 12
    assert client.resolve(lost.error["entry"], "--applied", "--id", made, "--reason", "seen").code == 0
