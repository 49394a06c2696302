// Run: WEBHOOK_SECRET=whsec_... node receiver.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const key = Buffer.from(process.env.WEBHOOK_SECRET.replace(/^whsec_/, ""), "base64");
const toleranceSeconds = 300;

// Whether one of the signatures is right, and the time is near. body: the bytes as they arrived.
function isGenuine(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": given } = headers;
  if (!id || !given || !/^[0-9]{1,12}$/.test(time ?? "")) return false;
  if (Math.abs(Date.now() / 1000 - Number(time)) > toleranceSeconds) return false;
  const expected = createHmac("sha256", key).update(`${id}.${time}.`).update(body).digest();
  return given.split(" ").some((one) => {
    const [version, text] = one.split(",");
    const signature = Buffer.from(text ?? "", "base64");
    return version === "v1" && signature.length === expected.length && timingSafeEqual(signature, expected);
  });
}

createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  if (request.method !== "POST" || request.url.split("?")[0] !== "/hooks") return response.writeHead(404).end();
  if (!isGenuine(request.headers, body)) return response.writeHead(400).end();
  const event = JSON.parse(body);
  if (event?.type === "subscription.verification") return response.end(event.challenge);
  console.log(request.headers["webhook-id"], event); // Skip an id that you have seen; else store the event.
  response.writeHead(204).end();
}).listen(process.env.PORT ?? 8000);
