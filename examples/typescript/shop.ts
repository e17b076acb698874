// A shop in TypeScript: it creates a Payment and waits until a signed webhook says that it is paid.
import { createServer } from "node:http";
import createClient from "openapi-fetch";
import { Webhook } from "standardwebhooks";
import type { paths } from "./api.js";

const { PAYMENTS_URL, PAYMENTS_KEY, WEBHOOK_SECRET, PORT } = process.env as Record<string, string>;
const order = "order-1042";
const client = createClient<paths>({
  baseUrl: PAYMENTS_URL,
  headers: { Authorization: "Basic " + Buffer.from(PAYMENTS_KEY).toString("base64") },
});

const webhook = new Webhook(WEBHOOK_SECRET);
const server = createServer(async (request, response) => {
  let body = ""; // as it was sent: the signature is over its bytes
  for await (const part of request.setEncoding("utf8")) body += part;
  try {
    const event = webhook.verify(body, request.headers as Record<string, string>) as { name: string };
    response.writeHead(204).end();
    console.log(event.name);
    if (event.name === "payment.succeeded") server.close();
  } catch {
    response.writeHead(400).end();
  }
}).listen(Number(PORT));

const { data, error } = await client.POST("/v2/payments", {
  params: { header: { "Idempotency-Key": order } }, // the same key never makes a second Payment
  body: {
    intent: "receive", amount: "25.00", reference: order,
    destination: { type: "wallet", address: "0x8ba1f109551bD432803012645Ac136ddd64DBA72" },
  },
});
if (error) throw new Error(JSON.stringify(error));
console.log(data.paymentUrl);
if (data.status === "succeeded") server.close(); // an earlier run got its events: none comes
