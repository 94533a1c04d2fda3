"""Intent before bytes, seen from outside: no write leaves while its intent is not on the disk."""

from pathlib import Path

import pytest

from faults.kills import HarnessError, Violation, ViolationError
from faults.order import Order, watching
from faults.sweep import sweeping
from faults.tracing import needs_strace

pytestmark = needs_strace


def follow(folder: Path, verb: str, *, variant: str | None = None) -> Order:
    with sweeping(folder, verb, variant=variant) as swept:
        swept.renew()
        harness, log = swept.harness, folder / "calls"
        harness.witness.kind = "answer"
        order = Order(harness.home.resolve() / "state")
        ended = harness.run(swept.line, under=watching(log))
        if (ended.code, len(harness.witness.applied)) != (0, 1):
            raise HarnessError(f"an undisturbed {swept.line} ended with {ended}")
        try:
            order.read(log)
        finally:
            assert variant is None or harness.mark.exists()
        return order


@pytest.mark.representative("create")
@pytest.mark.parametrize("verb", ["create", "release"])
def test_nothing_is_sent_before_its_intent_is_synced(tmp_path: Path, verb: str) -> None:
    assert follow(tmp_path, verb).sent == 1


@pytest.mark.representative("*-create")
@pytest.mark.parametrize("verb", ["create", "release"])
@pytest.mark.parametrize("variant", ["never_syncs", "intent_after_sending"])
@pytest.mark.usefixtures("in_time")
def test_the_order_shows_a_broken_variant(tmp_path: Path, verb: str, variant: str) -> None:
    with pytest.raises(ViolationError) as noticed:
        follow(tmp_path, verb, variant=variant)
    assert noticed.value.kind is Violation.NO_INTENT
