"""Replies to a create of 100 USD that created it, in shapes that payment and escrow APIs document.

Those that created nothing are in `payment_errors` and `framework_errors`. Names and nesting are each API's own; ids,
texts and figures are made up, with the amount that the test sends. `source` names the API and the page or section of
its documentation.
"""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class CreateReply:
    """One reply: `code` is how `tx create` must end, `made` the id that it must print."""

    source: str
    body: object
    status: str = "200 OK"
    headers: tuple[str, ...] = ()
    code: int = 12
    made: str | None = None

    def encode(self) -> bytes:
        if self.body is None:
            return b""
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


def failed(source: str, made: str, body: object, status: str = "200 OK") -> CreateReply:
    """Something was recorded under an id, and the payment failed."""
    return CreateReply(source, body, status, code=16, made=made)


def created(
    source: str, made: str, body: object, status: str = "201 Created", headers: tuple[str, ...] = ()
) -> CreateReply:
    return CreateReply(source, body, status, headers, code=0, made=made)


CREATED: tuple[CreateReply, ...] = (
    created(
        "Stripe: Create a PaymentIntent (docs.stripe.com/api/payment_intents/create)",
        "pi_3MtwBwLkdIwHu7ix28a3tqPa",
        {
            "id": "pi_3MtwBwLkdIwHu7ix28a3tqPa",
            "object": "payment_intent",
            "amount": 100,
            "currency": "usd",
            "last_payment_error": None,
            "status": "requires_payment_method",
        },
        status="200 OK",
    ),
    created(
        "Escrow.com: Creating your first transaction (www.escrow.com/api/docs/create-transaction)",
        "3300003",
        {
            "id": 3300003,
            "parties": [{"customer": "buyer@example.com", "agreed": True, "role": "buyer"}],
            "currency": "usd",
            "description": "The sale of a domain",
            "items": [{"status": {"received": False, "rejected": False}, "schedule": [{"amount": "100.00"}]}],
        },
    ),
    created(
        "Tilia: createEscrowTransaction (tilia.io/docs/openapi/invoicing)",
        "esc_2V2TxPgh8usE9neZJoEjQyFHhVh",
        {"id": "esc_2V2TxPgh8usE9neZJoEjQyFHhVh", "account_id": "acct_2TiDFXH", "status": "OPEN"},
    ),
    created(
        "Online Payment Platform: Create transaction, uid (docs.onlinepaymentplatform.com, Transactions API)",
        "tra_0a1b2c3d4e5f",
        {"uid": "tra_0a1b2c3d4e5f", "object": "transaction", "status": "created", "amount": 100},
        status="200 OK",
    ),
    created(
        "PayPal: Create order (developer.paypal.com/docs/api/orders/v2)",
        "5O190127TN364715T",
        {"id": "5O190127TN364715T", "status": "CREATED", "links": [{"rel": "self", "href": "https://x.example"}]},
    ),
    created(
        "Square: CreatePayment, in an envelope (square SDK, models/create-payment-response)",
        "R2B3Z8WMVt3EAmzYWLZvz7Y69EbZY",
        {
            "payment": {
                "id": "R2B3Z8WMVt3EAmzYWLZvz7Y69EbZY",
                "status": "COMPLETED",
                "amount_money": {"amount": 100, "currency": "USD"},
            }
        },
        status="200 OK",
    ),
    created(
        "Mollie: Create payment (docs.mollie.com/reference/create-payment)",
        "tr_5B8cwPMGnU",
        {
            "resource": "payment",
            "id": "tr_5B8cwPMGnU",
            "amount": {"value": "100.00", "currency": "USD"},
            "status": "open",
        },
    ),
    created(
        "Flutterwave: Create a charge, in an envelope (developer.flutterwave.com, charges)",
        "chg_e1f3a2b1-93f0-4a51-aa57-1d80c5e4c001",
        {
            "status": "success",
            "message": "Charge created",
            "data": {
                "id": "chg_e1f3a2b1-93f0-4a51-aa57-1d80c5e4c001",
                "amount": 100,
                "currency": "USD",
                "status": "pending",
                "error": None,
            },
        },
    ),
    created(
        "Checkout.com: Response codes, 10000 Approved (www.checkout.com/docs, Response codes)",
        "pay_y3oqhf46pyzuxjbcn2giaqnb44",
        {
            "id": "pay_y3oqhf46pyzuxjbcn2giaqnb44",
            "amount": 100,
            "currency": "USD",
            "approved": True,
            "status": "Authorized",
            "response_code": "10000",
        },
    ),
    created(
        "Mangopay: Create a transfer, Id in upper case (docs.mangopay.com/api-reference/transfers)",
        "157756497",
        {"Id": "157756497", "Status": "SUCCEEDED", "ResultCode": "000000", "DebitedFunds": {"Amount": 100}},
        status="200 OK",
    ),
    created(
        "Wise: Create a transfer, with our customerTransactionId (docs.wise.com/api-reference/transfer)",
        "16521632",
        {
            "id": 16521632,
            "targetAccount": 8692237,
            "status": "incoming_payment_waiting",
            "customerTransactionId": "54a6bc09-cef9-49a8-9041-f1f0c654cd88",
            "hasActiveIssues": False,
        },
        status="200 OK",
    ),
    created(
        "Midtrans: Charge, transaction_id and status_code 201 (docs.midtrans.com/reference, Charge transactions)",
        "1a1a66f7-27a7-4844-ba1f-d86dcc16ab27",
        {
            "status_code": "201",
            "status_message": "Success, transaction is created",
            "transaction_id": "1a1a66f7-27a7-4844-ba1f-d86dcc16ab27",
            "gross_amount": "100.00",
            "currency": "USD",
            "transaction_status": "pending",
        },
        status="200 OK",
    ),
    created(
        "Xendit: Create payout (docs.xendit.co, Payouts)",
        "disb-1475459775872",
        {"id": "disb-1475459775872", "amount": 100, "currency": "USD", "reference_id": "r", "status": "ACCEPTED"},
        status="200 OK",
    ),
    created(
        "Alipay style gateways: code 0 and data (code, msg, data; 0 is success)",
        "2013112011001004330000121536",
        {"code": 0, "msg": "ok", "data": {"txId": "2013112011001004330000121536", "amount": "100.00"}},
        status="200 OK",
    ),
    created(
        "ISO 8583 gateways as JSON: response code 00 (ISO 8583, data element 39)",
        "632503000125",
        {"transactionId": "632503000125", "responseCode": "00", "responseMessage": "Approved"},
        status="200 OK",
    ),
    created(
        "MongoDB's name of an id, as services on it return it (MongoDB manual, the _id field)",
        "507f1f77bcf86cd799439011",
        {"_id": "507f1f77bcf86cd799439011", "amount": 100, "currency": "USD", "status": "held", "__v": 0},
    ),
    created(
        "Dwolla: Create a transfer, 201 with a Location and no body (developers.dwolla.com), at this service's path",
        "15c6bcce-46f7-e811-8112-e8dd3bececa8",
        None,
        headers=("Location: /api/v1/transactions/15c6bcce-46f7-e811-8112-e8dd3bececa8",),
    ),
    created(
        "RFC 9110, section 15.3.2: 201 with a Location and a status",
        "tx_7K2M9QHD",
        {"status": "held"},
        headers=("Location: transactions/tx_7K2M9QHD",),
    ),
)
