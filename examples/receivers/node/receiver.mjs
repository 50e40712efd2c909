// A webhook receiver with one effect for each event, however often the event comes. See ../README.md.
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import pg from "pg";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

const { DATABASE_URL, LEDGER_SQL, WEBHOOK_SECRET, PORT = "8080" } = process.env;
const LEASE_MS = process.env.LEASE_MS ?? "30000"; // longer than the effect takes
const [BODY_BYTES_MAX, KEY_BYTES_MAX] = [256 * 1024, 321]; // the ledger's table takes no longer key
const statement = (name) => readFileSync(`${LEDGER_SQL}/${name}.sql`, "utf8");
const [CLAIM, COMPLETE, FAIL] = ["claim", "complete", "fail"].map(statement);
const webhook = new Webhook(WEBHOOK_SECRET);
const pool = new pg.Pool({ connectionString: DATABASE_URL });
pool.on("error", console.error); // of an idle connection; the pool makes another
const later = (status, headers) => ({ status, headers: { "retry-after": 1, ...headers } });

// The effect. It writes through the transaction that completes the entry; its answer is what duplicates get.
async function charge(client, key, event) {
  const insert = "INSERT INTO charges (event_key, amount) VALUES ($1, $2) RETURNING id";
  const { rows } = await client.query(insert, [key, event.amount]);
  return { status: 200, type: "application/json", body: Buffer.from(`{"charge":${rows[0].id}}`) };
}

async function once(client, key, body, event) {
  const fingerprint = createHash("sha256").update(body).digest("hex");
  const claimed = await client.query(CLAIM, [key, randomUUID(), LEASE_MS, fingerprint, "retake"]);
  const { path, fence, attempts, ...entry } = claimed.rows[0];
  const told = (outcome) => ({ "posthaste-ledger": `path=${path}, outcome=${outcome}, attempt=${attempts}` });
  if (path === "key_reused") return { status: 422 };
  const rest = { "retry-after": Math.ceil(entry.retry_after_ms / 1000) || 1 }; // of the other's lease
  // Never 2xx: the other may fail yet.
  if (path === "in_progress_elsewhere") return later(409, { ...told("none"), ...rest });
  const stored = { status: entry.result_status, type: entry.result_type, body: entry.result_bytes };
  if (path === "duplicate_done") return { ...stored, headers: told(entry.outcome) };
  let reported = false;
  try {
    await client.query("BEGIN");
    const answer = await charge(client, key, event);
    reported = true;
    const report = [key, fence, "committed", answer.body, answer.type, answer.status];
    const counted = (await client.query(COMPLETE, report)).rowCount === 1;
    await client.query(counted ? "COMMIT" : "ROLLBACK"); // not counted: another was granted the key
    return counted ? { ...answer, headers: told("committed") } : later(409, told("none"));
  } catch (error) {
    // Once reported, nobody knows whether it was committed: say nothing, and let the lease end.
    if (reported) throw Object.assign(error, { answer: { status: 500 } });
    await client.query("ROLLBACK");
    await client.query(FAIL, [key, fence, error.name, error.message]);
    return later(503, told("failed"));
  }
}

async function receive(request) {
  if (!(request.headers["content-length"] <= BODY_BYTES_MAX)) return { status: 413 };
  const [body, key] = [await buffer(request), request.headers["webhook-id"]]; // signed: nobody can choose it
  let event;
  try {
    event = webhook.verify(body, request.headers); // the raw body, before anybody parses it
    if (Buffer.byteLength(key) > KEY_BYTES_MAX || !Number.isSafeInteger(event.amount)) return { status: 400 };
  } catch (error) {
    return { status: key && error instanceof WebhookVerificationError ? 401 : 400 };
  }
  const client = await pool.connect();
  const work = once(client, key, body, event);
  const failed = (error) => client.release(error); // closed: it may be in a transaction
  work.then(() => client.release(), failed);
  return work;
}

const server = createServer(async (request, response) => {
  const failed = (error) => (console.error(error), error.answer ?? later(503));
  const answer = await receive(request).catch(failed);
  const body = answer.body ?? "";
  const headers = { "content-type": answer.type ?? "text/plain", "content-length": body.length };
  response.writeHead(answer.status ?? 200, { ...headers, ...answer.headers }).end(body);
});
server.listen(PORT, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${server.address().port}`));
