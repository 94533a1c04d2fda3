"""Loaded by Schemathesis: corrects what a schema cannot express about good requests."""

import os
from typing import Any

import schemathesis

EXISTING = {"list_transactions": os.environ["EXAMINER_TRANSACTION"], "list_webhooks": os.environ["EXAMINER_WEBHOOK"]}


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Let `after` name an existing record in requests that must succeed."""
    existing = EXISTING.get(case.operation.definition.raw["operationId"])
    must_succeed = case.meta is not None and case.meta.generation.mode.is_positive
    if existing and must_succeed and "after" in case.query:
        case.query["after"] = existing
