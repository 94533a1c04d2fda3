"""One request as the handlers see it, with no trace of the web library."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from escrowctl.sandbox.body import JsonError, JsonObject, read_json
from escrowctl.sandbox.problems import Flaw, ProblemError, ProblemKind, flawed, parameter_flaw

MAX_BODY_BYTES = 1024 * 1024
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """An authenticated request: the id out of the path ("" if it has none), and the rest as it came."""

    resource_id: str
    query: str
    content_type: str
    body: bytes

    def json_object(self) -> JsonObject:
        """The body as a JSON object; 415 or 400 otherwise.

        interface.md section 5: requests with a body carry `Content-Type: application/json`. A
        charset parameter is let pass (RFC 8259 gives it no meaning): the text is UTF-8 anyway.
        """
        if self.content_type.partition(";")[0].strip().lower() != JSON_TYPE:
            raise ProblemError(ProblemKind.NOT_JSON_TYPE, f"A body needs the header Content-Type: {JSON_TYPE}.")
        try:
            value = read_json(self.body)
        except JsonError as error:
            raise flawed(Flaw("#", f"The body is not usable JSON: {error}.")) from error
        if not isinstance(value, Mapping):
            raise flawed(Flaw("#", "The body must be a JSON object."))
        return value

    def parameters(self, *allowed: str) -> Mapping[str, str]:
        """The query parameters; 400 for a name that is not allowed here, or given twice.

        Silence about a filter that does nothing would show a client the wrong records.
        """
        pairs = parse_qsl(self.query, keep_blank_values=True)
        found = dict(pairs)
        unknown = [name for name in found if name not in allowed]
        flaws = [parameter_flaw(name, f"{name!r} is not a parameter of this call.") for name in unknown]
        if len(found) != len(pairs):
            flaws.append(parameter_flaw("query", "A parameter is given twice."))
        if flaws:
            raise flawed(*flaws)
        return found
