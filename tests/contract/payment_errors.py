"""Replies of payment and escrow services to a create that failed, as `create_replies` describes them."""

from create_replies import CreateReply, failed

PAYMENT_ERRORS: tuple[CreateReply, ...] = (
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
            "Id": "5e83fbe8-7345-4778-8437-4aa6464b3337",
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
)
