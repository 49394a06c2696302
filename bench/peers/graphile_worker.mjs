// graphile-worker as its documentation tunes it for throughput, posting one JSON body per job over kept TLS.
//
// Reads JSON from the command line: {url, ca_file, jobs, payload_bytes, concurrency, connections, batch,
// local_queue, complete_delay_ms, pool_size, client}. The database comes from PGHOST, PGPORT, PGUSER and PGDATABASE. Prints JSON: {jobs,
// seconds, requests}. `seconds`: from the first enqueue until no job is left in its table.

import { readFileSync } from "node:fs";
import https from "node:https";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { Pool as HttpPool } from "undici";

const options = JSON.parse(process.argv[2]);
const ca = readFileSync(options.ca_file);
const HEADERS = { "content-type": "application/json" };
const POLL_MS = 5;

function fail(error) {
  console.error(error);
  process.exit(1);
}

function undiciPost() {
  const { origin, pathname } = new URL(options.url);
  const pool = new HttpPool(origin, { connections: options.connections, pipelining: 1, connect: { ca } });
  return async (body) => {
    const answer = await pool.request({ path: pathname, method: "POST", headers: HEADERS, body });
    await answer.body.dump();
    return answer.statusCode;
  };
}

function httpsPost() {
  const agent = new https.Agent({ keepAlive: true, maxSockets: options.connections, ca });
  return (body) =>
    new Promise((resolve, reject) => {
      const headers = { ...HEADERS, "content-length": Buffer.byteLength(body) };
      const request = https.request(options.url, { method: "POST", agent, headers }, (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.statusCode));
        answer.on("error", reject);
      });
      request.on("error", reject);
      request.end(body);
    });
}

const post = options.client === "https" ? httpsPost() : undiciPost();
let requests = 0;

async function deliver(payload) {
  const status = await post(JSON.stringify(payload));
  requests += 1;
  if (status < 200 || status > 299) throw new Error(`the receiver answered ${status}`);
}

function specs(first, count) {
  return Array.from({ length: count }, (_, offset) => {
    const number = first + offset;
    const room = options.payload_bytes - JSON.stringify({ number, filler: "" }).length;
    return { identifier: "deliver", payload: { number, filler: "x".repeat(room) } };
  });
}

async function untilNoneIsLeft(pool) {
  for (;;) {
    if (requests >= options.jobs) {
      const { rows } = await pool.query("SELECT EXISTS (SELECT FROM graphile_worker._private_jobs) AS left");
      if (!rows[0].left) return;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

const pool = new pg.Pool({ max: options.pool_size });
pool.on("error", fail);
pool.on("connect", (client) => client.on("error", fail));
const utils = await makeWorkerUtils({ pgPool: pool });
const runner = await run({
  taskList: { deliver },
  preset: {
    worker: {
      pgPool: pool,
      concurrentJobs: options.concurrency,
      localQueue: { size: options.local_queue },
      completeJobBatchDelay: options.complete_delay_ms,
      failJobBatchDelay: options.complete_delay_ms,
      logger: new Logger(() => () => {}),
    },
  },
});

const started = performance.now();
for (let first = 0; first < options.jobs; first += options.batch) {
  await utils.addJobs(specs(first, Math.min(options.batch, options.jobs - first)));
}
await untilNoneIsLeft(pool);
const seconds = (performance.now() - started) / 1000;
await runner.stop();
await utils.release();
await pool.end();
console.log(JSON.stringify({ jobs: options.jobs, seconds, requests }));
process.exit(0);
