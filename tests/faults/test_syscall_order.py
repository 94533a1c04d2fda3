"""No write is sent before its intent is on the disk, as strace shows it."""

from pathlib import Path

import pytest

from faults.kills import HarnessError, Violation, ViolationError
from faults.strace import needs_strace
from faults.syscall_faults import faulted_command
from faults.syscall_order import SyscallOrder, tracing_order

pytestmark = needs_strace


def follow(folder: Path, verb: str, *, variant: str | None = None) -> SyscallOrder:
    with faulted_command(folder, verb, variant=variant) as command:
        command.renew()
        harness, log = command.harness, folder / "calls"
        harness.fake_service.kind = "answer"
        order = SyscallOrder(harness.home.resolve() / "state")
        ended = harness.run(command.line, under=tracing_order(log))
        if (ended.code, len(harness.fake_service.applied)) != (0, 1):
            raise HarnessError(f"an undisturbed {command.line} ended with {ended}")
        try:
            order.read(log)
        finally:
            assert variant is None or harness.mark.exists()
        return order


@pytest.mark.representative("create")
@pytest.mark.parametrize("verb", ["create", "release"])
def test_request_leaves_after_its_intent_is_synced(tmp_path: Path, verb: str) -> None:
    assert follow(tmp_path, verb).sent == 1


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["create", "release"])
@pytest.mark.parametrize("variant", ["never_syncs", "intent_after_sending"])
@pytest.mark.usefixtures("time_limit")
def test_the_order_shows_a_broken_variant(tmp_path: Path, verb: str, variant: str) -> None:
    with pytest.raises(ViolationError) as noticed:
        follow(tmp_path, verb, variant=variant)
    assert noticed.value.kind is Violation.NO_INTENT
