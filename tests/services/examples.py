"""Ten example services. INTERFACE.md shows no reply: each of these could be the service."""

from services.service import HTML, TEXT, ExampleService, Expected, Reply, ok

CREATE = "tx create --amount 100 --currency USD"
RELEASED_WORD = 'status.released = ["released"]'
OBSERVED = "note: GET /transactions is an undocumented call: the list may be incomplete\n"

# As INTERFACE.md section 7 saw it: 200 for a create, 201 for a webhook, 400 for an update; bare records.
AS_OBSERVED = ExampleService(
    name="bare records, as observed",
    profile=RELEASED_WORD,
    routes={
        "POST /transactions": ok('{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'),
        "GET /transactions/tx_1": ok('{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'),
        "GET /transactions": ok('[{"id":"tx_1","status":"held","amount":100,"currency":"USD"}]'),
        "PUT /transactions/tx_1": Reply("400 Bad Request", '{"message":"cannot be changed"}'),
        "PUT /transactions/tx_1/release": ok('{"id":"tx_1","status":"released"}'),
        "GET /users/u_1": ok('{"id":"u_1","name":"Ada"}'),
        "POST /webhooks": Reply("201 Created", '{"id":"wh_1","url":"https://x.example"}'),
        "GET /webhooks": ok('[{"id":"wh_1","url":"https://x.example"}]'),
    },
    after={"GET /transactions/tx_1": ok('{"id":"tx_1","status":"released","amount":100,"currency":"USD"}')},
    expected=(
        Expected(CREATE, 0, "id\ttx_1\nstatus\theld\namount\t100\ncurrency\tUSD\n"),
        Expected("tx get tx_1 --json", 0, '{"id": "tx_1", "status": "held", "amount": 100, "currency": "USD"}\n'),
        Expected("tx list", 0, "tx_1\theld\t100\tUSD\t\n", OBSERVED),
        Expected("tx update tx_1 --data '{}' --yes", 8, "", '400 "cannot be changed"'),
        Expected(
            "tx release tx_1 --yes --json",
            0,
            '{"id": "tx_1", "http_status": 200, "reply": {"id": "tx_1", "status": "released"}, '
            '"status_before": "held", "status_after": "released", "verified": true}\n',
        ),
        Expected("user get u_1", 0, "id\tu_1\nname\tAda\n"),
        Expected("webhook create --url https://x.example -q", 0, "wh_1\n"),
        Expected("webhook list", 0, "wh_1\t\thttps://x.example\t\t\n"),
        Expected("api GET /users/u_1", 0, '{"id": "u_1", "name": "Ada"}\n'),
    ),
)

# Everything in {"data": ...}, 201 for what is made, 204 for a release.
ENVELOPED = ExampleService(
    name="envelopes, 201 and 204",
    profile=RELEASED_WORD,
    routes={
        "POST /transactions": Reply(
            "201 Created", '{"data":{"transaction_id":"t-9","state":"pending","amount":100,"currency":"USD"}}'
        ),
        "GET /transactions/t-9": ok('{"data":{"transaction_id":"t-9","state":"pending"},"meta":{"v":2}}'),
        "GET /transactions": ok('{"data":[{"transaction_id":"t-9","state":"pending"}],"has_more":false}'),
        "PUT /transactions/t-9": ok('{"data":{"transaction_id":"t-9","state":"pending","note":"x"}}'),
        "PUT /transactions/t-9/release": Reply("204 No Content"),
        "GET /users/u-1": ok('{"data":{"user_id":"u-1"},"meta":{}}'),
        "POST /webhooks": Reply("201 Created", '{"data":{"webhook_id":"w-1","endpoint":"https://x.example"}}'),
        "GET /webhooks": ok('{"data":[{"webhook_id":"w-1","endpoint":"https://x.example"}]}'),
    },
    after={"GET /transactions/t-9": ok('{"data":{"transaction_id":"t-9","state":"RELEASED"}}')},
    expected=(
        Expected(f"{CREATE} -q", 0, "t-9\n"),
        Expected("tx get t-9", 0, "transaction_id\tt-9\nstate\tpending\n"),
        Expected(
            "tx get t-9 --raw --json", 0, '{"data": {"transaction_id": "t-9", "state": "pending"}, "meta": {"v": 2}}\n'
        ),
        Expected("tx list --json", 0, '[{"transaction_id": "t-9", "state": "pending"}]\n'),
        Expected(
            'tx update t-9 --data \'{"note":"x"}\' --yes --json',
            0,
            '{"transaction_id": "t-9", "state": "pending", "note": "x"}\n',
        ),
        Expected(
            "tx release t-9 --yes --json",
            0,
            '{"id": "t-9", "http_status": 204, "reply": null, "status_before": "pending", "status_after": "RELEASED", '
            '"verified": true}\n',
        ),
        Expected("user get u-1 --fields id", 0, "id\tu-1\n"),
        Expected("webhook create --url https://x.example", 0, "webhook_id\tw-1\nendpoint\thttps://x.example\n"),
        Expected("webhook list", 0, "w-1\t\thttps://x.example\t\t\n"),
        Expected("api GET /webhooks -q", 0, "w-1\n"),
    ),
)

# Ids are integers, amounts are texts, the prefix is the one of INTERFACE.md's example request.
INTEGERS = ExampleService(
    name="ids as integers, amounts as text, /v1",
    prefix="/v1",
    routes={
        "POST /transactions": ok('{"id":41,"status":1,"amount":"100.00","currency":"USD"}'),
        "GET /transactions/41": ok('{"id":41,"status":1,"amount":"100.00","currency":"USD"}'),
        "GET /transactions": ok('{"items":[{"id":41,"status":1,"amount":"100.00"},{"id":42}],"total":2}'),
        "PUT /transactions/41": Reply("200 OK"),
        "PUT /transactions/41/release": Reply("200 OK"),
        "GET /users/7": ok('{"id":7,"balance":12345678901234567890.10}'),
        "POST /webhooks": ok('{"id":3}'),
        "GET /webhooks": ok('{"total":0,"webhooks":[]}'),
    },
    after={"GET /transactions/41": ok('{"id":41,"status":4,"amount":"100.00","currency":"USD"}')},
    expected=(
        Expected(CREATE, 0, "id\t41\nstatus\t1\namount\t100.00\ncurrency\tUSD\n"),
        Expected("tx get 41 --fields id,status,amount --json", 0, '{"id": "41", "status": "1", "amount": 100.00}\n'),
        Expected("tx list", 0, "41\t1\t100.00\t\t\n42\t\t\t\t\n"),
        Expected("tx update 41 --data '{}' --yes", 0, "id\t41\nstatus\t1\namount\t100.00\ncurrency\tUSD\n"),
        Expected(
            "tx release 41 --yes --expect-amount 100 --json",
            0,
            '{"id": "41", "http_status": 200, "reply": null, "status_before": "1", "status_after": "4", '
            '"verified": null}\n',
            "escrowctl -p p config set status.pending 4",
        ),
        Expected("user get 7 --json", 0, '{"id": 7, "balance": 12345678901234567890.10}\n'),
        Expected("webhook create --url https://x.example -q", 0, "3\n"),
        Expected("webhook list --json", 0, "[]\n"),
        Expected("api GET /users/7 -q", 0, "7\n"),
    ),
)

_STRANGE = '{"escrowRef":"A-10977","escrowState":"AWAITING_DEPOSIT","value":{"amt":100.00,"ccy":"USD"}}'
_STRANGE_ROUTES = {
    "POST /transactions": ok(_STRANGE),
    "GET /transactions/A-10977": ok(_STRANGE),
    "GET /transactions": ok(f'{{"payload":{{"escrows":[{_STRANGE}]}}}}'),
    "PUT /transactions/A-10977": ok(_STRANGE),
    "PUT /transactions/A-10977/release": ok('{"queued":true}'),
    "GET /users/77": ok('{"partyRef":77}'),
    "POST /webhooks": ok('{"hookRef":"h"}'),
    "GET /webhooks": ok('{"hooks":[{"hookRef":"h","callbackUrl":"https://x.example"}]}'),
}

# Unusual names, and a profile that says which is which.
POINTED = ExampleService(
    name="strange names, pointed to",
    profile=(
        'reply.id = "/escrowRef"\nreply.status = "/escrowState"\nreply.amount = "/value/amt"\n'
        'reply.currency = "/value/ccy"\nstatus.released = ["PAID_OUT"]'
    ),
    routes=_STRANGE_ROUTES,
    after={"GET /transactions/A-10977": ok(_STRANGE.replace("AWAITING_DEPOSIT", "paid_out"))},
    expected=(
        Expected(f"{CREATE} -q", 0, "A-10977\n"),
        Expected(
            "tx get A-10977 --fields id,status,amount,currency",
            0,
            "id\tA-10977\nstatus\tAWAITING_DEPOSIT\namount\t100.00\ncurrency\tUSD\n",
        ),
        Expected("tx list", 0, "A-10977\tAWAITING_DEPOSIT\t100.00\tUSD\t\n"),
        Expected('tx update A-10977 --data \'{"note":"x"}\' --yes -q', 0, "A-10977\n"),
        Expected("tx release A-10977 --yes --expect-currency EUR", 3, "", "USD"),
        Expected(
            "tx release A-10977 --yes --expect-amount 100 --expect-currency USD --json",
            0,
            '{"id": "A-10977", "http_status": 200, "reply": {"queued": true}, "status_before": "AWAITING_DEPOSIT", '
            '"status_after": "paid_out", "verified": true}\n',
        ),
        Expected("user get 77 --json", 0, '{"partyRef": 77}\n'),
        Expected("webhook create --url https://x.example", 0, "hookRef\th\n", "id"),
        Expected("webhook list --json", 0, '[{"hookRef": "h", "callbackUrl": "https://x.example"}]\n'),
        Expected("api GET /users/77", 0, '{"partyRef": 77}\n'),
    ),
)

# The same names without such a profile: shown unchanged, and never guessed at.
UNPOINTED = ExampleService(
    name="strange names, unknown",
    routes=_STRANGE_ROUTES,
    expected=(
        Expected(f"{CREATE} --reference a", 12, "", _STRANGE),
        Expected(f"{CREATE} --reference b --json", 12, "", "escrowctl -p p config set reply.id /escrowRef"),
        Expected("tx get A-10977 --fields /escrowRef,status --json", 16, '{"/escrowRef": "A-10977", "status": null}\n'),
        Expected("tx list -q", 0, ""),
        Expected(
            'tx update A-10977 --data \'{"note":"x"}\' --yes --allow-unreadable --fields /escrowState',
            0,
            "/escrowState\tAWAITING_DEPOSIT\n",
        ),
        Expected("tx release A-10977 --yes --expect-amount 100", 10, "", "doctor --tx A-10977"),
        Expected(
            "tx release A-10977 --yes --allow-unreadable --json",
            0,
            '{"id": "A-10977", "http_status": 200, "reply": {"queued": true}, "status_before": null, '
            '"status_after": null, "verified": null}\n',
        ),
        Expected("user get 77", 0, "partyRef\t77\n"),
        Expected("webhook create --url https://x.example -q", 12, "", "no id in the reply"),
        Expected("webhook list", 0, "\t\thttps://x.example\t\t\n"),
        Expected("api GET /transactions/A-10977 --fields /value/amt --json", 0, '{"/value/amt": 100.00}\n'),
    ),
)

# Errors in plain words, each another status.
TEXT_ERRORS = ExampleService(
    name="errors as text",
    routes={
        "POST /transactions": Reply("403 Forbidden", "scope missing: escrow.write\n", TEXT),
        "GET /transactions/tx_1": ok('{"id":"tx_1"}'),
        "GET /transactions": Reply("500 Internal Server Error", "boom \x1b[2J", TEXT),
        "PUT /transactions/tx_1": Reply("409 Conflict", "locked by a job", TEXT),
        "PUT /transactions/tx_1/release": Reply("422 Unprocessable Content", "beneficiary blocked", TEXT),
        "GET /users/u_1": Reply("401 Unauthorized", "who are you?", TEXT),
        "POST /webhooks": Reply("429 Too Many Requests", "slow down", TEXT),
        "GET /webhooks": Reply("503 Service Unavailable", "<h1>Sorry</h1>", HTML),
    },
    expected=(
        Expected(CREATE, 5, "", '403 "scope missing: escrow.write"'),
        Expected("tx get tx_2", 6, "", '404 "no such route"'),
        Expected("tx list", 10, "", '500 "boom \\u{1b}[2J"'),
        Expected("tx update tx_1 --data '{}' --yes", 7, "", '409 "locked by a job"'),
        Expected("tx release tx_1 --yes", 8, "", '422 "beneficiary blocked"'),
        Expected("user get u_1", 4, "", '401 "who are you?"'),
        Expected("webhook create --url https://x.example", 9, "", '429 "slow down"'),
        Expected("webhook list", 10, "", '503 "Sorry"'),
        Expected("api GET /nothing", 6, "", '404 "no such route"'),
    ),
)

_PROBLEM = '{"type":"https://p.example/%s","title":"%s","status":%d,"detail":"%s"}'
_PROBLEM_TYPE = "application/problem+json"

# RFC 9457 problems and HAL collections, below a path of the base URL and with no prefix at all.
PROBLEMS = ExampleService(
    name="problem details, HAL, no prefix",
    path="/escrow/api",
    prefix="",
    profile=RELEASED_WORD,
    routes={
        "POST /transactions": Reply(
            "400 Bad Request", _PROBLEM % ("low", "Too low", 400, "at least 500"), _PROBLEM_TYPE
        ),
        "GET /transactions/tx_1": ok('{"uuid":"tx_1","status":"released","_links":{"self":{"href":"/x"}}}'),
        "GET /transactions": ok('{"_links":{},"_embedded":{"transactions":[{"uuid":"tx_1","status":"released"}]}}'),
        "PUT /transactions/tx_1": Reply(
            "405 Method Not Allowed", _PROBLEM % ("no", "No", 405, "no PUT"), _PROBLEM_TYPE
        ),
        "GET /users/u_1": Reply("410 Gone", _PROBLEM % ("gone", "Gone", 410, "the user left"), _PROBLEM_TYPE),
        "POST /webhooks": Reply("202 Accepted", '{"uuid":"w","url":"https://x.example","state":"unconfirmed"}'),
        "GET /webhooks": ok('{"_embedded":{"webhooks":[{"uuid":"w","state":"unconfirmed"}]}}'),
    },
    expected=(
        Expected(CREATE, 8, "", '400 "at least 500"'),
        Expected("tx get tx_1 -q", 0, "tx_1\n"),
        Expected("tx list", 0, "tx_1\treleased\t\t\t\n"),
        Expected("tx update tx_1 --data '{}' --yes", 8, "", '405 "no PUT"'),
        Expected("tx release tx_1 --yes", 7, "", "tx_1"),
        Expected("tx release tx_1 --yes --skip-released --fields status_after", 0, "status_after\treleased\n"),
        Expected("user get u_1", 8, "", '410 "the user left"'),
        Expected(
            "webhook create --url https://x.example --fields status,url",
            0,
            "status\tunconfirmed\nurl\thttps://x.example\n",
        ),
        Expected("webhook list --fields id,status", 0, "w\tunconfirmed\n"),
        Expected(
            "api GET /webhooks --raw", 0, '{"_embedded": {"webhooks": [{"uuid": "w", "state": "unconfirmed"}]}}\n'
        ),
    ),
)

# Amounts beyond any float, money as an object, unknown words, letters of many scripts.
EXTREME = ExampleService(
    name="amounts beyond float, unknown words",
    profile=RELEASED_WORD,
    routes={
        "POST /transactions": ok(
            '{"id":"0190c2a8-5a3e-7bb1","status":"AUF_EIS","amount":{"value":"100.000","currency":"KWD"},"r":1E+400}'
        ),
        "GET /transactions/0190c2a8-5a3e-7bb1": ok(
            '{"id":"0190c2a8-5a3e-7bb1","status":"\\u51cd\\u7d50","amount":98765432109876543210.123,"currency":"KWD"}'
        ),
        "GET /transactions": ok('{"list":[{"id":"a","status":"\\u202e","amount":0.1000000000000000055511}]}'),
        "PUT /transactions/0190c2a8-5a3e-7bb1": ok("[]"),
        "PUT /transactions/0190c2a8-5a3e-7bb1/release": ok('"queued"'),
        "GET /users/u": ok('{"id":"u","name":"Z\\u00fcrich \\u2066evil"}'),
        "POST /webhooks": ok('{"id":"w","events":["*"],"n":-0.0}'),
        "GET /webhooks": ok('{"webhooks":[{"id":"w","events":["*"]}],"other":[1]}'),
    },
    after={"GET /transactions/0190c2a8-5a3e-7bb1": ok('{"id":"0190c2a8-5a3e-7bb1","status":"\\u89e3\\u6551"}')},
    expected=(
        Expected(
            "tx create --amount 100.000 --currency KWD --json",
            0,
            '{"id": "0190c2a8-5a3e-7bb1", "status": "AUF_EIS", "amount": {"value": "100.000", "currency": "KWD"}, '
            '"r": 1E+400}\n',
        ),
        Expected(
            "tx get 0190c2a8-5a3e-7bb1 --fields status,amount,currency",
            0,
            "status\t\u51cd\u7d50\namount\t98765432109876543210.123\ncurrency\tKWD\n",
        ),
        Expected("tx list", 0, "a\t\\u{202e}\t0.1000000000000000055511\t\t\n"),
        Expected("tx update 0190c2a8-5a3e-7bb1 --data '{\"n\":1}' --yes --json", 0, "[]\n"),
        Expected("tx release 0190c2a8-5a3e-7bb1 --yes --expect-amount 98765432109876543210.12", 3, "", "was expected"),
        Expected(
            "tx release 0190c2a8-5a3e-7bb1 --yes --expect-amount 98765432109876543210.1230 --json",
            16,
            "",
            '"status_after": "\\u89e3\\u6551"',
        ),
        Expected("user get u", 0, "id\tu\nname\tZ\u00fcrich \\u{2066}evil\n"),
        Expected("webhook create --url https://x.example --json", 0, '{"id": "w", "events": ["*"], "n": -0.0}\n'),
        Expected("webhook list --fields id,events", 0, 'w\t["*"]\n'),
        Expected("api GET /users/u", 0, '{"id": "u", "name": "Z\\u00fcrich \\u2066evil"}\n'),
    ),
)

_NO = '{"success":false,"error":{"message":"not today"}}'

# 200 for everything, and the truth in the body.
SUCCESS_FALSE = ExampleService(
    name="errors with status 200",
    routes={
        "POST /transactions": ok(_NO),
        "GET /transactions/tx_1": ok('{"success":true,"data":{"id":"tx_1","status":"held","error":null}}'),
        "GET /transactions/tx_2": ok(_NO),
        "GET /transactions/tx_3": ok('{"id":"tx_3","status":"failed","error":"card declined"}'),
        "GET /transactions": ok(_NO),
        "PUT /transactions/tx_1": ok(_NO),
        "PUT /transactions/tx_1/release": ok(_NO),
        "GET /users/u_1": ok('{"status":"error","message":"no such user"}'),
        "POST /webhooks": ok(_NO),
        "GET /webhooks": ok('{"success":false,"data":[]}'),
    },
    expected=(
        Expected(CREATE, 12, "", '(field "success")'),
        Expected("tx get tx_1", 0, "id\ttx_1\nstatus\theld\nerror\t\n"),
        Expected("tx get tx_2", 10, "", '"not today"'),
        Expected("tx get tx_3 --json", 0, '{"id": "tx_3", "status": "failed", "error": "card declined"}\n'),
        Expected("tx list", 10, "", '"not today"'),
        Expected("tx update tx_1 --data '{}' --yes", 12, "", "tx_1"),
        Expected("tx release tx_1 --yes", 12, "", "tx_1"),
        Expected("user get u_1", 10, "", '"no such user"'),
        Expected("webhook create --url https://x.example", 12, ""),
        Expected("webhook list", 10, "", "200"),
        Expected("api GET /transactions", 0, '{"success": false, "error": {"message": "not today"}}\n'),
    ),
)

_PAGE = "<!doctype html><title>Sign in</title>"

# A login page in front of everything, or nothing at all behind a 2xx.
SPEECHLESS = ExampleService(
    name="pages and empty replies",
    routes={
        "POST /transactions": Reply("201 Created"),
        "GET /transactions/tx_1": Reply("200 OK", _PAGE, HTML),
        "GET /transactions": Reply("204 No Content"),
        "PUT /transactions/tx_1": Reply("200 OK", _PAGE, HTML),
        "PUT /transactions/tx_1/release": Reply("200 OK", _PAGE, HTML),
        "GET /users/u_1": Reply("200 OK"),
        "POST /webhooks": Reply("200 OK", "registered", TEXT),
        "GET /webhooks": Reply("200 OK", '[{"id":"w"', "application/json"),
    },
    expected=(
        Expected(CREATE, 12, "", "201"),
        Expected("tx get tx_1", 10, "", "HTML"),
        Expected("tx list", 10, "", "204"),
        Expected("tx update tx_1 --data '{}' --yes", 10, ""),
        Expected("tx release tx_1 --yes", 10, "", "--allow-unreadable"),
        Expected("tx release tx_1 --yes --allow-unreadable", 12, "", "HTML"),
        Expected("user get u_1", 10, "", "200"),
        Expected("webhook create --url https://x.example", 12, "", "200"),
        Expected("webhook list", 10, "", "200"),
        Expected("api GET /transactions/tx_1", 0, f"{_PAGE}\n"),
        Expected("api GET /users/u_1", 0, "\n"),
    ),
)

EXAMPLES = (
    AS_OBSERVED,
    ENVELOPED,
    INTEGERS,
    POINTED,
    UNPOINTED,
    TEXT_ERRORS,
    PROBLEMS,
    EXTREME,
    SUCCESS_FALSE,
    SPEECHLESS,
)
