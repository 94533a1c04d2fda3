"""The suite of writes notices a broken client, each against a variant for which its fault is a matter of money."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Run
from faults.reply_variants import Reached, Variant, judges_by_status_alone, sends_again_after_a_reset

from escrowctl.client.http import make_headers
from escrowctl.journal.model import State
from escrowctl.writes.read_back import ReadBack
from escrowctl.writes.result import WriteResult
from services.test_faults import test_write_under_a_fault_is_done_once as check_fault
from services.test_writes import test_lost_create_is_found_and_recorded as check_lost_create
from services.test_writes import test_queued_release_is_not_called_released_before_it_is as check_queued_release
from services.variants import AMNESIAC, Client, serving_variant

pytestmark = pytest.mark.filterwarnings("ignore:send_bytes:DeprecationWarning")


def takes_an_empty_reply_for_released(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Read nothing back after a release that was accepted without a word."""
    conclude = ReadBack.conclude

    def hasty(self: ReadBack, result: WriteResult) -> WriteResult:
        if result.record is not None or result.sent_entry.state is not State.DONE:
            return conclude(self, result)
        reached()
        return result._replace(verified=True)

    monkeypatch.setattr(ReadBack, "conclude", hasty)


def draws_a_key_for_each_attempt(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Send a write again under another key."""

    def forgetful(*words: Any, **keywords: Any) -> Any:
        reached()
        return make_headers(*words, **keywords | {"idempotency_key": str(uuid.uuid4())})

    monkeypatch.setattr("escrowctl.writes.writer.make_headers", forgetful)


class Case(NamedTuple):
    """A broken client, the variant that it meets, and the test of the suite that notices it."""

    breaks: Variant
    variant: str
    check: Callable[[Client], None]


CASES = (
    Case(sends_again_after_a_reset, AMNESIAC, check_lost_create),
    Case(takes_an_empty_reply_for_released, "release=empty", check_queued_release),
    Case(draws_a_key_for_each_attempt, "idempotent=on", check_lost_create),
    Case(judges_by_status_alone, "created=201", lambda client: check_fault(client, "create", "bad-json")),
)


@pytest.mark.representative("takes_an_empty_reply_*")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.breaks.__name__}-{case.variant}")
def test_suite_notices_a_broken_client(case: Case, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[bool] = []
    with serving_variant(case.variant, home, run) as client:
        case.breaks(monkeypatch, lambda: reached.append(True))

        with pytest.raises(AssertionError):
            case.check(client)

    assert reached
