"""Replies to a create of 100 USD, in shapes that payment and escrow APIs, and what they are built with, document.

Names and nesting are each API's own; ids, texts and figures are made up, with the amount that the test
sends. `source` names the API and the page or section of its documentation.
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


ERROR_ID = "5e83fbe8-7345-4778-8437-4aa6464b3337"

NOTHING_CREATED: tuple[CreateReply, ...] = (
    # Payment and escrow services
    CreateReply(
        "Stripe: API reference, Errors (docs.stripe.com/api/errors)",
        {
            "error": {
                "type": "card_error",
                "code": "card_declined",
                "decline_code": "insufficient_funds",
                "message": "Your card has insufficient funds.",
                "charge": "ch_3NirD82eZvKYlo2C1",
            }
        },
    ),
    CreateReply(
        "Adyen: Error codes and messages (docs.adyen.com/development-resources/error-codes)",
        {
            "status": 422,
            "errorCode": "14_002",
            "message": "Invalid amount",
            "errorType": "validation",
            "pspReference": "8816178914079738",
        },
    ),
    CreateReply(
        "Adyen: Checkout API, POST /payments, refused (docs.adyen.com/development-resources/refusal-reasons)",
        {
            "pspReference": "8816178952380553",
            "refusalReason": "Not enough balance",
            "refusalReasonCode": "12",
            "resultCode": "Refused",
            "merchantReference": "order-8841",
        },
    ),
    CreateReply(
        "PayPal: Orders v2, error 422 (developer.paypal.com/api/rest/responses, Error responses)",
        {
            "name": "UNPROCESSABLE_ENTITY",
            "details": [{"issue": "INSTRUMENT_DECLINED", "description": "The instrument was declined."}],
            "message": "The requested action could not be performed.",
            "debug_id": "fa9ffe64391d4",
            "links": [{"href": "https://developer.paypal.com/docs/api/orders/v2/", "rel": "information_link"}],
        },
    ),
    CreateReply(
        "Square: Payments API, Error codes (developer.squareup.com/docs/payments-api/error-codes)",
        {
            "errors": [
                {
                    "code": "INSUFFICIENT_FUNDS",
                    "detail": "Authorization error: 'INSUFFICIENT_FUNDS'",
                    "category": "PAYMENT_METHOD_ERROR",
                }
            ]
        },
    ),
    CreateReply(
        "Square: CreatePayment, errors with a payment that failed (square SDK, models/create-payment-response)",
        {
            "errors": [{"code": "GENERIC_DECLINE", "category": "PAYMENT_METHOD_ERROR"}],
            "payment": {
                "id": "GQTFp1ZlXdpoW4o6eGiZhbjosiDFf",
                "status": "FAILED",
                "amount_money": {"amount": 100, "currency": "USD"},
            },
        },
    ),
    CreateReply(
        "Mollie: Handling errors (docs.mollie.com/reference/handling-errors)",
        {
            "status": 422,
            "title": "Unprocessable Entity",
            "detail": "The amount is higher than the maximum",
            "field": "amount",
            "_links": {"documentation": {"href": "https://docs.mollie.com/errors", "type": "text/html"}},
        },
    ),
    CreateReply(
        "Paystack: API, Errors, Error response format (paystack.com/docs/api/errors)",
        {
            "status": False,
            "message": "Your balance is not enough to fulfil this request",
            "meta": {"next_step": "Top up your balance"},
            "type": "validation_error",
            "code": "insufficient_balance",
        },
    ),
    failed(
        "Paystack: Errors, 200 is always sent for a charge (paystack.com/docs/api/errors, HTTP codes)",
        "895091250",
        {
            "status": True,
            "message": "Charge attempted",
            "data": {"id": 895091250, "status": "failed", "amount": 100, "currency": "USD", "reference": "zuvbpizf"},
        },
    ),
    CreateReply(
        "Flutterwave: v3, Common errors (developer.flutterwave.com/v3.0.0/docs/common-errors)",
        {"status": "error", "message": "Transfer creation failed", "data": None},
    ),
    CreateReply(
        "Razorpay: Errors, Error response (razorpay.com/docs/errors)",
        {
            "error": {
                "code": "BAD_REQUEST_ERROR",
                "description": "Payment failed",
                "field": None,
                "source": "customer",
                "step": "payment_authentication",
                "reason": "invalid_otp",
                "metadata": {"payment_id": "pay_EDNBKIP31Y4jl8", "order_id": "order_DBJKIP31Y4jl8"},
            }
        },
    ),
    CreateReply(
        "Alipay: Open platform, common response parameters (opendocs.alipay.com, alipay.trade.create)",
        {
            "alipay_trade_create_response": {
                "code": "40004",
                "msg": "Business Failed",
                "sub_code": "ACQ.BUYER_BALANCE_NOT_ENOUGH",
                "sub_msg": "the balance is not enough",
            },
            "sign": "ERITJKEIJKJHKKKKKKKHJEREEEEEEEEEEE",
        },
    ),
    CreateReply(
        "Alipay style gateways: code, msg, data (Alipay open platform, common response parameters, unwrapped)",
        {"code": 40001, "msg": "insufficient balance", "data": None},
    ),
    CreateReply(
        "WeChat Pay: API v3, error codes (pay.weixin.qq.com/doc/v3, error information)",
        {"code": "PARAM_ERROR", "message": "the amount is wrong", "detail": {"field": "/amount/total", "value": "100"}},
    ),
    CreateReply(
        "WeChat platform: global return codes (developers.weixin.qq.com, Global Return Code)",
        {"errcode": 40013, "errmsg": "invalid appid"},
    ),
    CreateReply(
        "WeChat Pay: v2 unified order, as JSON (pay.weixin.qq.com/wiki/doc/api, unifiedorder, result)",
        {
            "return_code": "SUCCESS",
            "return_msg": "OK",
            "result_code": "FAIL",
            "err_code": "NOTENOUGH",
            "err_code_des": "the balance is not enough",
        },
    ),
    CreateReply(
        "Wise: Errors (docs.wise.com/api-reference, Errors)",
        {"errors": [{"code": "NOT_VALID", "message": "Amount is too low", "path": "sourceAmount", "arguments": []}]},
    ),
    CreateReply(
        "Escrow.com: API, errors in validation (www.escrow.com/api/docs, Errors)",
        {"errors": {"items": {"0": {"schedule": ["Missing data for required field."]}}}},
    ),
    CreateReply(
        "Mangopay: Error report (docs.mangopay.com/errors/error-report)",
        {
            "Message": "One or several required parameters are missing or incorrect.",
            "Type": "param_error",
            "Id": ERROR_ID,
            "Date": 1740581497.0,
            "errors": {"DebitedFunds": "The DebitedFunds field is required."},
        },
    ),
    failed(
        "Mangopay: Error 001001, Unsufficient wallet balance (docs.mangopay.com/errors/codes/001001)",
        "157756496",
        {
            "Id": "157756496",
            "CreationDate": 1670423591,
            "AuthorId": "150429004",
            "DebitedFunds": {"Currency": "USD", "Amount": 100},
            "Status": "FAILED",
            "ResultCode": "001001",
            "ResultMessage": "Unsufficient wallet balance",
            "Type": "TRANSFER",
        },
    ),
    CreateReply(
        "Braintree: GraphQL error handling, always 200 (developer.paypal.com/braintree, GraphQL Error Handling)",
        {
            "data": {"chargePaymentMethod": None},
            "errors": [{"message": "Reader not found.", "extensions": {"legacyCode": "96704"}}],
            "extensions": {"requestId": "a-uuid-for-the-request"},
        },
    ),
    CreateReply(
        "Checkout.com: API reference, validation error (api-reference.checkout.com, Payments, 422)",
        {"request_id": "0HL80RJLS76I7", "error_type": "request_invalid", "error_codes": ["payment_source_required"]},
    ),
    failed(
        "Checkout.com: Response codes, soft decline (www.checkout.com/docs, Response codes, 20051)",
        "pay_y3oqhf46pyzuxjbcn2giaqnb44",
        {
            "id": "pay_y3oqhf46pyzuxjbcn2giaqnb44",
            "action_id": "act_y3oqhf46pyzuxjbcn2giaqnb44",
            "amount": 100,
            "currency": "USD",
            "approved": False,
            "status": "Declined",
            "response_code": "20051",
            "response_summary": "Insufficient Funds",
        },
        status="201 Created",
    ),
    CreateReply(
        "GoCardless: API reference, Errors (developer.gocardless.com/api-reference, Errors)",
        {
            "error": {
                "type": "validation_failed",
                "code": 422,
                "message": "Validation failed",
                "request_id": "dd50eaaf-8213-48fe-90d6-5466872efbc4",
                "errors": [{"field": "amount", "message": "is too low", "request_pointer": "/payments/amount"}],
            }
        },
    ),
    CreateReply(
        "Dwolla: Errors, validation error (developers.dwolla.com, API reference, Errors)",
        {
            "code": "ValidationError",
            "message": "Validation error(s) present. See embedded errors list for more details.",
            "_embedded": {"errors": [{"code": "InsufficientFunds", "message": "too little", "path": "/amount/value"}]},
        },
    ),
    CreateReply(
        "Plaid: Errors overview (plaid.com/docs/errors)",
        {
            "error_type": "TRANSACTION_ERROR",
            "error_code": "TRANSACTION_INSUFFICIENT_FUNDS",
            "error_message": "There are insufficient funds to complete the transaction",
            "display_message": None,
            "request_id": "HNTDNrA8F1shFEW",
        },
    ),
    CreateReply(
        "Xendit: Errors (docs.xendit.co/apidocs, Errors)",
        {"error_code": "INSUFFICIENT_BALANCE", "message": "Insufficient balance in your account"},
    ),
    CreateReply(
        "Midtrans: Core API, 401 with an id of the error's own (Midtrans/midtrans-nodejs-client issue 22; "
        "docs.midtrans.com/reference/status-code-4xx)",
        {
            "status_code": "401",
            "status_message": "Transaction cannot be authorized with the current client/server key.",
            "id": "1679fb5e-31b2-49e0-bbae-cec703a5cdde",
        },
    ),
    CreateReply(
        "Midtrans: Snap API, errors (docs.midtrans.com, Snap, error_messages)",
        {"error_messages": ["transaction_details.gross_amount is required"]},
    ),
    CreateReply(
        "PayU Latam: Payments API, error (developers.payulatam.com, Payments API, response)",
        {"code": "ERROR", "error": "Invalid request", "transactionResponse": None},
    ),
    CreateReply(
        "PayU Latam: Payments API, declined (developers.payulatam.com, Response codes for transactions)",
        {
            "code": "SUCCESS",
            "error": None,
            "transactionResponse": {
                "orderId": 857787920,
                "transactionId": "1c3b5b0e-0d5b-4c57-9a39-6f1c8a7f2b10",
                "state": "DECLINED",
                "responseCode": "INSUFFICIENT_FUNDS",
            },
        },
    ),
    CreateReply(
        "PayU Europe: REST API 2.1, status codes (developers.payu.com/europe, status codes)",
        {"status": {"statusCode": "ERROR_VALUE_INVALID", "severity": "ERROR", "codeLiteral": "INVALID_AMOUNT"}},
    ),
    CreateReply(
        "Klarna: Errors (docs.klarna.com/api/errors)",
        {
            "error_code": "BAD_VALUE",
            "error_messages": ["Bad value: order_amount"],
            "correlation_id": "41636415-889d-47b7-9001-fea909b089a1",
        },
    ),
    CreateReply(
        "Worldpay: Access APIs, Errors, Error responses (developer.worldpay.com/products/access/reference/errors)",
        {
            "errorName": "bodyDoesNotMatchSchema",
            "message": "The json body provided does not match the expected schema",
            "validationErrors": [{"errorName": "fieldIsMissing", "jsonPath": "$.instruction.value.amount"}],
        },
    ),
    CreateReply(
        "Authorize.Net: createTransactionResponse, error (developer.authorize.net/api/reference, responseCode 3)",
        {
            "transactionResponse": {
                "responseCode": "3",
                "transId": "0",
                "errors": [{"errorCode": "5", "errorText": "A valid amount is required."}],
            },
            "messages": {"resultCode": "Error", "message": [{"code": "E00027", "text": "unsuccessful"}]},
        },
    ),
    failed(
        "Nuvei: REST API, /payment, output parameters transactionStatus and errCode (docs.nuvei.com)",
        "1110000000004146935",
        {
            "transactionId": "1110000000004146935",
            "transactionStatus": "DECLINED",
            "gwErrorReason": "Insufficient funds",
            "status": "SUCCESS",
            "errCode": 0,
            "reason": "",
        },
    ),
    failed(
        "Cybersource: Payments, 201 confirms the id only (developer.cybersource.com, Response codes, 201 DECLINED)",
        "6461731521426399003473",
        {
            "id": "6461731521426399003473",
            "submitTimeUtc": "2026-11-21T03:12:44Z",
            "status": "DECLINED",
            "errorInformation": {"reason": "INSUFFICIENT_FUND", "message": "Insufficient funds in the account."},
        },
        status="201 Created",
    ),
    failed(
        "Mercado Pago: Payments, rejected (mercadopago.com developers, Payment status, insufficient_amount)",
        "1316643679",
        {
            "id": 1316643679,
            "status": "rejected",
            "status_detail": "cc_rejected_insufficient_amount",
            "transaction_amount": 100,
            "currency_id": "USD",
        },
        status="201 Created",
    ),
    CreateReply(
        "dLocal: Payouts, HTTP errors India account, 200 with code 1001 (docs.dlocal.com/reference)",
        {"code": 1001, "message": "Failed validation."},
    ),
    CreateReply(
        "ISO 8583 gateways as JSON: response code 51 (ISO 8583, data element 39)",
        {"mti": "0110", "stan": "000123", "rrn": "632503000123", "responseCode": "51", "amount": "000000010000"},
    ),
    CreateReply(
        "ISO 8583 gateways as JSON: response code 05 with an id (ISO 8583, data element 39)",
        {"transactionId": "632503000124", "responseCode": "05", "responseMessage": "Do not honour"},
    ),
    # What services are built with
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
        {"errors": [{"id": ERROR_ID, "status": "422", "source": {"pointer": "/data/attributes/amount"}}]},
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
