"""Check every answer against the sandbox's own OpenAPI document, with exact numbers.

Written from the OpenAPI 3.1 and JSON Schema specifications; it imports nothing that builds the document.
"""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import httpx
import jsonschema_rs

from escrowctl.sandbox.service import Sandbox

TRANSPORT_HEADERS = {"content-type", "content-length"}


def exact(text: str | bytes) -> Any:
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def fetch_document(sandbox: Sandbox) -> dict[str, Any]:
    """Read the document without a key."""
    with httpx.Client(transport=httpx.WSGITransport(app=sandbox.app)) as anonymous:
        document = anonymous.get("http://sandbox.invalid/openapi.json").raise_for_status().json()
    assert isinstance(document, dict)
    return document


@dataclass(frozen=True)
class Judge:
    """Lists what the document does not allow in an answer; as an event hook of an httpx client it raises."""

    document: dict[str, Any]

    def __call__(self, response: httpx.Response) -> None:
        response.read()
        flaws = self.flaws(response)
        assert not flaws, f"{response.request.method} {response.request.url} -> {response.status_code}: {flaws}"

    def flaws(self, response: httpx.Response) -> list[str]:
        operation = self.operation(response.request)
        documented = operation["responses"] if operation else self.document["components"]["responses"]
        found = self.resolve(documented.get(str(response.status_code)))
        if found is None:
            return [f"status {response.status_code} is not documented"]
        flaws = self.header_flaws(found, response)
        if response.request.method != "HEAD":
            flaws += self.body_flaws(found, response)
        if operation and response.is_success:
            flaws += self.request_flaws(operation, response.request)
        return flaws

    def operation(self, request: httpx.Request) -> dict[str, Any] | None:
        path = request.url.raw_path.partition(b"?")[0].decode()
        for template, methods in self.document["paths"].items():
            if re.fullmatch(template.replace("{id}", "[^/]+"), path):
                found = methods.get(request.method.lower())
                assert found is None or isinstance(found, dict)
                return found
        return None

    def resolve(self, node: Any) -> Any:
        while isinstance(node, dict) and "$ref" in node:
            place = node["$ref"].removeprefix("#/").split("/")
            node = self.document
            for name in place:
                node = node[name]
        return node

    def header_flaws(self, found: dict[str, Any], response: httpx.Response) -> list[str]:
        documented = {name.lower(): self.resolve(header) for name, header in found["headers"].items()}
        present = {name.lower(): value for name, value in response.headers.items()}
        flaws = [f"header {name} is missing" for name in documented if name not in present]
        flaws += [f"header {name} is not documented" for name in present.keys() - documented - TRANSPORT_HEADERS]
        for name in documented.keys() & present:
            flaws += self.schema_flaws(documented[name]["schema"], present[name], place=f"header {name}")
        return flaws

    def body_flaws(self, found: dict[str, Any], response: httpx.Response) -> list[str]:
        media_type = response.headers.get("content-type")
        if media_type not in found["content"]:
            return [f"content type {media_type} is not documented"]
        return self.schema_flaws(found["content"][media_type]["schema"], exact(response.text), place="body")

    def request_flaws(self, operation: dict[str, Any], request: httpx.Request) -> list[str]:
        """Flaws of a request that succeeded although the document does not allow it."""
        body = request.read()
        if not body or "requestBody" not in operation:
            return []
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        return self.schema_flaws(schema, exact(body), place="request body")

    def schema_flaws(self, schema: dict[str, Any], value: Any, *, place: str) -> list[str]:
        return [f"{place}{error.instance_path}: {error.message}" for error in self.validator(schema).iter_errors(value)]

    def validator(self, schema: dict[str, Any]) -> Any:
        key = json.dumps(schema, sort_keys=True)
        if key not in self.validators:
            complete = {**schema, "components": self.document["components"]}
            self.validators[key] = jsonschema_rs.Draft202012Validator(complete)
        return self.validators[key]

    @cached_property
    def validators(self) -> dict[str, Any]:
        return {}
