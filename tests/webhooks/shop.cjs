// A sender of somebody else: Node and the JavaScript library of Standard Webhooks. node shop.cjs SECRET URL
const { Webhook } = require("standardwebhooks");

const [secret, url] = process.argv.slice(2);
const body = JSON.stringify({ type: "transaction.created", data: { id: "tx_1", status: "held", note: "größer" } });
const now = new Date();
const headers = {
  "webhook-id": "msg_node",
  "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
  "webhook-signature": new Webhook(secret).sign("msg_node", now, body),
  "content-type": "application/json",
};
fetch(url, { method: "POST", body, headers }).then((answer) => console.log(answer.status));
