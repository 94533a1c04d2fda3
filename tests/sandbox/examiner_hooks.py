"""Loaded by Schemathesis: what a schema cannot say of good requests, and so has to be put in their place."""

import os
from typing import Any

import schemathesis

EXISTING = {"list_transactions": os.environ["EXAMINER_TRANSACTION"], "list_webhooks": os.environ["EXAMINER_WEBHOOK"]}


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Let `after` name a record that exists, in requests that are meant to be good."""
    existing = EXISTING.get(case.operation.definition.raw["operationId"])
    meant_to_be_good = case.meta is not None and case.meta.generation.mode.is_positive
    if existing and meant_to_be_good and "after" in case.query:
        case.query["after"] = existing
