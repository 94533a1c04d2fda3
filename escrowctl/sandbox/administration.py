"""Calls about the sandbox itself, next to the interface: what is set, moves by hand, the ledger."""

import re
from collections.abc import Mapping

from escrowctl.errors import EscrowctlError
from escrowctl.sandbox import ledger
from escrowctl.sandbox.bodies import BodyFlaw, JsonObject, ProblemError, ProblemKind, flawed
from escrowctl.sandbox.clock import Clock
from escrowctl.sandbox.http import LEDGER_PATH, MOVES_PATH, SETTINGS_PATH, Call, Handler
from escrowctl.sandbox.magic import MAGIC_IDS
from escrowctl.sandbox.moves import carry_out
from escrowctl.sandbox.outbox import DrawId
from escrowctl.sandbox.records import TRANSITIONS, State, find_move, timestamp
from escrowctl.sandbox.rehearsal import Rehearsal
from escrowctl.sandbox.requests import NewStatus, read_body
from escrowctl.sandbox.store import Store
from escrowctl.sandbox.transactions import require_transaction


class Administration:
    """Answers for the calls about one sandbox; refusals are `ProblemError`s."""

    def __init__(self, store: Store, rehearsal: Rehearsal, *, clock: Clock, draw_id: DrawId) -> None:
        self._store = store
        self._rehearsal = rehearsal
        self._clock = clock
        self._draw_id = draw_id

    @property
    def handlers(self) -> Mapping[str, Mapping[str, Handler]]:
        """Path -> method -> what answers it."""
        return {
            SETTINGS_PATH: {"PUT": self.change_settings, "DELETE": self.clear_settings},
            MOVES_PATH: {"POST": self.move},
            LEDGER_PATH: {"GET": self.list_ledger},
        }

    def change_settings(self, call: Call) -> JsonObject:
        """Set each name of the body to its value, and return all that is set; 400 for a bad one."""
        texts = {name: value for name, value in call.json_object().items() if isinstance(value, str)}
        if len(texts) != len(call.json_object()):
            raise flawed(BodyFlaw("#", "The body must be an object of texts."))
        try:
            self._rehearsal.change(texts)
        except EscrowctlError as error:
            raise flawed(BodyFlaw("#", error.message)) from error
        return self._rehearsal.current().texts()

    def clear_settings(self, call: Call) -> JsonObject:
        """Remove every setting."""
        call.ignore_body()
        self._rehearsal.clear()
        return {}

    def move(self, call: Call) -> JsonObject:
        """Move a transaction to the status in the body, and return its record with `status_before`.

        404 if there is no such transaction; 409 where its state does not lead there.
        """
        body = read_body(call, NewStatus)
        wanted = body.id, body.status
        with self._store.writing() as connection:
            before = require_transaction(connection, wanted[0]).status
            move = find_move(before, State(wanted[1])) if wanted[1] in set(State) else None
            if move is None or wanted[0] in MAGIC_IDS:
                raise _impossible(*wanted, before)
            at = timestamp(self._clock.read(connection))
            moved = carry_out(connection, wanted[0], move, at=at, draw_id=self._draw_id)
            assert moved is not None, "its state was read in this transaction"
        return {"status_before": before, **moved.document()}

    def list_ledger(self, _call: Call) -> JsonObject:
        """Return every entry and the sums (`ledger.describe_ledger`)."""
        with self._store.reading() as connection:
            return ledger.describe_ledger(connection)


def _impossible(transaction_id: str, status: str, before: State) -> ProblemError:
    if transaction_id in MAGIC_IDS:
        return ProblemError(ProblemKind.MOVE_REFUSED, f"{transaction_id} is a magic id: it always is {before}.")
    ways = [one.after for one in TRANSITIONS.values() if one.before is before]
    where = f"from there it can become {', '.join(ways)}" if ways else "it can change no more"
    # The status is typed: it may be anything.
    shown = re.sub(r"[^a-z_-]", "?", status[:30]) or "nothing"
    return ProblemError(ProblemKind.MOVE_REFUSED, f"{transaction_id} is {before} and cannot become {shown}: {where}.")
