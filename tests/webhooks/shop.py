"""A web application of somebody else: werkzeug, requests, and the library of Standard Webhooks; nothing of escrowctl.

`python shop.py SECRET` prints its port. POST /sell?to=URL sends a signed event there and returns the status.
POST /hooks accepts an event that the library verifies; GET /hooks lists the accepted ids, one a line.
"""

import json
import sys
from datetime import UTC, datetime

import requests
from standardwebhooks import Webhook
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

WEBHOOK = Webhook(sys.argv[1])
ACCEPTED: list[str] = []


def sell(url: str) -> Response:
    now, event_id = datetime.now(UTC), f"msg_{len(ACCEPTED) + 1}"
    body = json.dumps({"type": "transaction.created", "data": {"id": "tx_1", "status": "held", "note": "größer"}})
    headers = {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": WEBHOOK.sign(event_id, now, body),
        "Content-Type": "application/json",
    }
    return Response(str(requests.post(url, data=body.encode(), headers=headers, timeout=30).status_code))


@Request.application
def shop(request: Request) -> Response:
    if request.path == "/sell":
        return sell(request.args["to"])
    if request.method == "POST":
        WEBHOOK.verify(request.get_data(), dict(request.headers))
        ACCEPTED.append(request.headers["webhook-id"])
        return Response(status=204)
    return Response("\n".join(ACCEPTED))


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, shop)
    print(server.port, flush=True)
    server.serve_forever()
