"""GET /openapi.json is complete, strict and correct. Every expected value is written by hand."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
import jsonschema_rs
import pytest

from escrowctl.contract.operations import OPERATIONS
from escrowctl.sandbox.service import Sandbox
from sandbox.conftest import fetch_document

URL = "http://sandbox.invalid/openapi.json"

STATUSES = {
    "POST /api/v1/transactions": "200 400 401 402 413 415 422 429 500 503",
    "GET /api/v1/transactions": "200 400 401 413 500 503",
    "GET /api/v1/transactions/{id}": "200 400 401 404 405 413 500 503",
    "PUT /api/v1/transactions/{id}": "400 401 404 405 413 415 500 503",
    "PUT /api/v1/transactions/{id}/release": "200 400 401 404 405 409 413 415 422 500 503",
    "GET /api/v1/users/{id}": "200 400 401 404 405 413 500 503",
    "POST /api/v1/webhooks": "201 400 401 413 415 500 503",
    "GET /api/v1/webhooks": "200 400 401 413 500 503",
}


@pytest.fixture
def document(sandbox: Sandbox) -> dict[str, Any]:
    return fetch_document(sandbox)


def operations(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def test_document_is_json_and_needs_no_key(sandbox: Sandbox) -> None:
    with httpx.Client(transport=httpx.WSGITransport(app=sandbox.app)) as anonymous:
        reply = anonymous.get(URL)

    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json()["openapi"] == "3.1.0"
    assert sandbox.key not in reply.text
    # A tool may read it at each start, so it stays far below the client's limit for a reply.
    assert len(reply.content) < 64 * 1024


def test_document_lists_every_operation_and_every_status(document: dict[str, Any]) -> None:
    found = operations(document)

    assert {place: " ".join(sorted(operation["responses"])) for place, operation in found.items()} == STATUSES
    named = {operation["operationId"]: place for place, operation in found.items()}
    assert {operation.name: named[operation.name] for operation in OPERATIONS} == {
        operation.name: f"{operation.method} /api/v1{operation.path}" for operation in OPERATIONS
    }


def test_document_contains_the_interfaces_examples_and_they_work(
    client: httpx.Client, document: dict[str, Any]
) -> None:
    found = operations(document)

    examples = {
        place: operation["requestBody"]["content"]["application/json"]["example"]
        for place, operation in found.items()
        if "example" in json.dumps(operation.get("requestBody", {}))
    }

    # INTERFACE.md section 2: amount is a number (the published request uses a whole number), currency a code.
    assert examples == {
        "POST /api/v1/transactions": {"amount": 100, "currency": "USD"},
        "POST /api/v1/webhooks": {"url": "http://127.0.0.1:3000/hooks", "events": ["transaction.released"]},
    }
    for place, example in examples.items():
        method, path = place.split()
        assert client.request(method, f"http://sandbox.invalid{path}", json=example).is_success
    (user,) = (parameter for parameter in found["GET /api/v1/users/{id}"]["parameters"] if parameter["name"] == "id")
    assert client.get(f"/users/{user['example']}").is_success


def test_every_schema_is_valid_and_states_additional_properties(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    for name, schema in schemas.items():
        jsonschema_rs.meta.validate(schema)
        if "properties" in schema:
            assert "required" in schema, name
            assert schema["additionalProperties"] in (True, False), name
    closed = {name for name, schema in schemas.items() if schema.get("additionalProperties") is False}
    assert {name for name in schemas if name.endswith(("Problem", "Page"))} | {"User", "Event", "Flaw"} == closed


def test_schema_of_a_create_is_as_strict_as_the_code(document: dict[str, Any]) -> None:
    fields = document["components"]["schemas"]["NewTransaction"]

    assert fields["required"] == ["amount", "currency"]
    described = fields["properties"]
    assert (
        described["amount"].items()
        >= {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100000000000000, "multipleOf": 0.0001}.items()
    )
    assert described["currency"].items() >= {"type": "string", "pattern": "^[A-Z]{3}$"}.items()
    assert fields["properties"]["expires_in"]["pattern"] == "^[1-9][0-9]{0,3}[smhd]$"
    assert {name for name, schema in described.items() if schema.get("not") == {}} == {
        *("auto_release_at", "created_at", "expires_at", "id", "status", "updated_at")
    }


def test_schema_has_the_secret_in_the_creation_only(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    assert "secret" in schemas["CreatedWebhook"]["required"]
    assert schemas["CreatedWebhook"]["properties"]["secret"]["pattern"] == "^whsec_[A-Za-z0-9+/]{43}=$"
    assert schemas["Webhook"]["properties"]["secret"]["not"] == {}
    assert schemas["WebhookPage"]["properties"]["data"]["items"] == {"$ref": "#/components/schemas/Webhook"}
