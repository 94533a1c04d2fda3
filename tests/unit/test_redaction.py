"""What is covered in texts: in time that grows with the text alone, for a write is not stored before its reply is."""

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from escrowctl.contract.redaction import hide_in_text

CHARACTERS = 1024 * 1024
"""Of the largest reply that is read."""
SECONDS = 30
"""Of the processor: all take less than one; a search that begins anew at each character takes minutes."""


@pytest.fixture(autouse=True)
def _budget() -> Iterator[None]:
    def end(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.representative("a.", "secret")
@pytest.mark.parametrize("unit", ["a.", "secret", "a", "-a", "x=", "?a=", "://", "whsec_", "\\", '"', 'secret":"', " "])
def test_covering_a_long_text_ends(unit: str) -> None:
    text = unit * (CHARACTERS // len(unit)) + '"=@'

    assert hide_in_text(f'{text}\n"api_key": "hush"').endswith('"api_key": "***"')


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ('{"api_key":"hush","id":"tx_1"}', '{"api_key":"***","id":"tx_1"}'),
        ('{\\"my-secret-2\\": \\"hush\\"}', '{\\"my-secret-2\\": \\"***\\"}'),
        ("a=b&client_secret=hush&c=d", "a=b&client_secret=***&c=***"),
        ("x=password=hush", "x=password=***"),
        ("note=my.secret=hush", "note=my.secret=***"),
        ("https://operator:hush@example.com/a", "https://***@example.com/a"),
        ("GET /a?token=hush&b=1", "GET /a?token=***&b=***"),
        ("secretary: nothing = here", "secretary: nothing = here"),
    ],
)
def test_values_that_may_be_secret_are_covered(text: str, covered: str) -> None:
    assert hide_in_text(text) == covered
