"""Errors as frameworks, formats, proxies and queues send them: no such reply proves a create."""

from create_replies import CreateReply

FRAMEWORK_ERRORS: tuple[CreateReply, ...] = (
    CreateReply("JSend: fail (JSend specification, Fail)", {"status": "fail", "data": {"amount": "is required"}}),
    CreateReply(
        "JSend: error with data (JSend specification, Error)",
        {"status": "error", "message": "Unable to reach the ledger", "code": 5, "data": {"id": "tx_1"}},
    ),
    CreateReply(
        "RFC 9457, section 3: problem details",
        {
            "type": "https://example.com/probs/out-of-credit",
            "title": "You do not have enough credit.",
            "status": 403,
            "detail": "Your current balance is 30, but that costs 50.",
            "instance": "/account/12345/msgs/abc",
        },
    ),
    CreateReply(
        "JSON:API 1.1: error objects (jsonapi.org/format, Error Objects)",
        {
            "errors": [
                {
                    "id": "5e83fbe8-7345-4778-8437-4aa6464b3337",
                    "status": "422",
                    "source": {"pointer": "/data/attributes/amount"},
                }
            ]
        },
    ),
    CreateReply(
        "OData 4.01: error response (OData JSON format, section 21.1)",
        {"error": {"code": "501", "message": "Unsupported functionality", "target": "query"}},
    ),
    CreateReply(
        "Google Cloud: HTTP mapping of errors (google.aip.dev/193)",
        {"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED", "details": []}},
    ),
    CreateReply(
        "AWS: JSON protocol error (Smithy, AWS JSON 1.0 protocol, Operation error serialization)",
        {"__type": "ValidationException", "message": "1 validation error detected"},
    ),
    CreateReply("AWS: API Gateway, gateway response (Amazon API Gateway guide)", {"message": "Forbidden"}),
    CreateReply(
        "Azure: REST API guidelines, Handling errors (microsoft/api-guidelines, azure/Guidelines)",
        {"error": {"code": "QuotaExceeded", "message": "The quota is exceeded.", "innererror": {"code": "Daily"}}},
    ),
    CreateReply(
        "Spring Boot: default error attributes (Spring Boot reference, Error handling)",
        {"timestamp": "2026-11-21T03:12:44.100+00:00", "status": 500, "error": "Internal Server Error", "path": "/x"},
    ),
    CreateReply(
        "Laravel: validation error response format (laravel.com/docs/validation)",
        {"message": "The amount must be at least 500.", "errors": {"amount": ["The amount must be at least 500."]}},
    ),
    CreateReply("Laravel: unauthenticated (laravel.com/docs/authentication)", {"message": "Unauthenticated."}),
    CreateReply(
        "Rails: errors of a record as JSON (guides.rubyonrails.org, Active Record validations)",
        {"errors": {"amount": ["must be greater than 500"]}},
    ),
    CreateReply(
        "Django REST framework: Exceptions (django-rest-framework.org/api-guide/exceptions)",
        {"amount": ["A valid number is required."]},
    ),
    CreateReply(
        "FastAPI: request validation errors (fastapi.tiangolo.com, Handling errors)",
        {"detail": [{"type": "greater_than", "loc": ["body", "amount"], "msg": "too low", "input": 100}]},
    ),
    CreateReply(
        "NestJS: built-in HTTP exceptions (docs.nestjs.com/exception-filters)",
        {"statusCode": 400, "message": ["amount must not be less than 500"], "error": "Bad Request"},
    ),
    CreateReply(
        "GraphQL: response format, errors (GraphQL specification, section 7.1)",
        {"errors": [{"message": "not enough", "path": ["createEscrow"]}], "data": {"createEscrow": None}},
    ),
    CreateReply(
        "JSON-RPC 2.0, section 5.1: error object, with the id of the request",
        {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Server error"}, "id": 1},
    ),
    # Who answers in a service's place
    CreateReply("an API's start page: a message alone", {"message": "Welcome to the API"}),
    CreateReply("a health check (IETF draft, Health check response format)", {"status": "pass", "version": "1"}),
    CreateReply(
        "httpbin: POST /anything, an echo (httpbin.org)",
        {
            "args": {},
            "data": '{"amount":100,"currency":"USD"}',
            "headers": {"Host": "httpbin.org", "X-Request-Id": "a-uuid"},
            "json": {"amount": 100, "currency": "USD"},
            "method": "POST",
            "url": "https://httpbin.org/anything",
        },
    ),
    CreateReply("a queue: 202 and the job (RFC 9110, section 15.3.3)", {"job": 7, "state": "queued"}, "202 Accepted"),
    CreateReply("nothing at all in an object", {}),
    CreateReply("nothing at all in an envelope", {"data": {}}),
    CreateReply("a default object (.NET: an id of 0)", {"id": 0, "amount": 0, "currency": None}),
    CreateReply("a default object (.NET: an empty Guid)", {"id": "00000000-0000-0000-0000-000000000000"}),
)
