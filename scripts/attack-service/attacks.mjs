// Attacks on the service. An attack returns a text if the service did not do what it should.
import { setTimeout as sleep } from "node:timers/promises";
import { comfyAttacks } from "./comfy-attacks.mjs";
import { get, inLanes, post } from "./http.mjs";
import { AUTH, signed } from "./service.mjs";
import { workAttacks } from "./work-attacks.mjs";

/** As many as `streams_per_run` allows. */
const READERS_PER_RUN = 20;
const EVENTS = 9990;
const BLANKS = " ".repeat(100_000);

export function allAttacks() {
  const oneRun = (service) => service.run(`events ${EVENTS} 1500`);
  return {
    // shows how busy the machine is
    nothing: { attack: () => sleep(2000) },
    headers: { attack: hostileHeaders },
    texts: {
      rendersGraph: true,
      // threads and their caches are not an attack
      prepare: (service) => Promise.all(Array.from({ length: 8 }, (_, i) => service.run(`a quiet lake ${i}`))),
      attack: hostileTexts,
    },
    readers: {
      prepare: oneRun,
      attack: async (service, { stream_url }) => {
        const responses = await Promise.all(Array.from({ length: 5 }, () => service.get(stream_url)));
        for (const text of responses.map(({ text }) => text)) {
          const last = [...text.matchAll(/^id: (\d+)$/gm)].length;
          if (last !== EVENTS) return `a reader got ${last} events`;
        }
      },
    },
    "paused-readers": {
      prepare: (service) => Promise.all(Array.from({ length: 300 / READERS_PER_RUN }, () => oneRun(service))),
      attack: async (service, runs) => {
        for (const { stream_url } of runs) {
          for (let i = 0; i < READERS_PER_RUN; i++) service.pausedSocket(get(stream_url));
        }
        await sleep(8000);
      },
    },
    pipelining: {
      attack: async (service) => {
        const requests = get("/openapi.json").repeat(1500);
        for (const end = performance.now() + 5000; performance.now() < end; await sleep(250)) {
          for (let i = 0; i < 40; i++) service.pausedSocket(requests);
        }
      },
    },
    "pipelining-few": {
      attack: async (service) => {
        const sockets = Array.from({ length: 40 }, () => service.pausedSocket(""));
        for (const end = performance.now() + 5000; performance.now() < end; await sleep(20)) {
          for (const socket of sockets)
            if (socket.writable && !socket.writableNeedDrain) socket.write(get("/openapi.json").repeat(20));
        }
      },
    },
    downloads: {
      prepare: (service) => service.run(`file ${64 * 2 ** 20}`),
      attack: async (service, { run_id }) => {
        const request = get(`/api/runs/${run_id}/files/${run_id}.bin`, [AUTH]);
        for (let i = 0; i < 300; i++) service.pausedSocket(request);
        await sleep(5000);
      },
    },
    wakes: { attack: manyWakes },
    ...comfyAttacks(),
    ...workAttacks(),
    senders: { attack: hostileSenders },
    waiting: {
      attack: async (service) => {
        const headers = [AUTH, "Content-Type: application/json", "Prefer: wait=300"];
        const request = post("/hooks/wake", headers, '{"text":"events 500 1000"}');
        for (let i = 0; i < 1000; i++) {
          service.pausedSocket(request);
          if (i % 20 === 0) await sleep(100);
        }
        await sleep(3000);
      },
    },
  };
}

/** As long as Node takes them, in each of the headers that the service looks at. */
async function hostileHeaders(service) {
  const blanks = " \t".repeat(8000);
  for (const header of [
    `Authorization: Bearer${blanks}x`,
    `Authorization: x${blanks}x`,
    `x-compat-token: x${blanks}x`,
    `Content-Type: application/json;${blanks}charset${blanks.slice(0, 1000)}x`,
    `Content-Encoding: gzip${blanks}x`,
    `Accept: ${`"${"\\".repeat(7000)}`}${",".repeat(7000)}`,
    `Accept: a;q${blanks}x`,
    `X-Forwarded-For: ${blanks}x`,
    `Idempotency-Key: x${blanks}x`,
    `Last-Event-ID: ${"1".repeat(15_000)}x`,
    `Last-Event-ID: 1${blanks}x`,
  ]) {
    const isAuth = /^(auth|x-compat)/i.test(header);
    const headers = [
      header,
      ...(isAuth ? [] : [AUTH]),
      ...(/^content-type/i.test(header) ? [] : ["Content-Type: application/json"]),
    ];
    await inLanes(8, 64, () => service.send(post("/hooks/agent", headers, '{"message":" "}')));
    await inLanes(8, 16, () => service.send(get("/api/stream?run_id=x", headers)));
  }
}

/** Messages on which a careless expression would work for minutes: they run on the example graph of the package. */
async function hostileTexts(service) {
  const texts = [
    `{{${BLANKS}`,
    "{{".repeat(50_000),
    `${"9".repeat(100_000)}x`,
    `{"message": ${"9".repeat(100_000)}x`,
    `{"message": -${"9".repeat(50_000)}.${"9".repeat(50_000)}ex}`,
    `${BLANKS}x`,
    `System event: ${BLANKS}\n`,
    "System event: x\n".repeat(6000),
    "(".repeat(100_000),
    `${":1.".repeat(30_000)}`,
    "[".repeat(100_000),
    '{"a":'.repeat(20_000),
  ];
  for (const message of texts) {
    const { status, text } = await service.post("/hooks/agent", { message });
    // JSON that is nested too deeply is refused at once
    if (status === 400) continue;
    if (status !== 200) return `a text got status ${status}`;
    const { status_url } = JSON.parse(text);
    const isDone = async () => JSON.parse((await service.get(status_url, [AUTH])).text).done;
    for (const since = performance.now(); !(await isDone()); await sleep(20)) {
      if (performance.now() - since > 5000)
        return `a run was busy for 5 s with ${JSON.stringify(message.slice(0, 20))}`;
    }
  }
}

/** Signatures that cannot be right, and signed payloads that are hard to read. */
async function hostileSenders(service) {
  const json = "Content-Type: application/json";
  const commas = ",v1=00".repeat(2500);
  const body = JSON.stringify({ a: "x".repeat(260_000) });
  for (const headers of [
    [`Stripe-Signature: t=1${commas}`],
    [`Stripe-Signature: ${"t=1,".repeat(4000)}`],
    [`X-Slack-Request-Timestamp: ${"1".repeat(15_000)}`, "X-Slack-Signature: v0=00"],
    [`X-Hub-Signature-256: sha256=${"0".repeat(15_000)}`],
    [`Prefer: ${'"'.repeat(7000)}${"\\".repeat(7000)}`, "X-Hub-Signature-256: sha256=00"],
  ]) {
    for (const name of ["stripe", "slack", "github"]) {
      await inLanes(8, 100, () => service.send(post(`/hooks/in/${name}`, [json, ...headers], body)));
    }
  }
  const form = "Content-Type: application/x-www-form-urlencoded";
  for (const [type, text] of [
    [json, "[".repeat(200_000)],
    [json, `{"a":${"[".repeat(250)}${"1,".repeat(100_000)}1${"]".repeat(250)}}`],
    [json, `{"a":{"b":"x"},"c":"${"\\ud800".repeat(40_000)}"}`],
    [json, `{${Array.from({ length: 20_000 }, (_, i) => `"${i}":0`)}}`],
    [json, `{"a":${"9".repeat(200_000)}}`],
    [form, "&".repeat(200_000)],
    [form, Array.from({ length: 30_000 }, (_, i) => `${i}=%`).join("&")],
    [form, `payload=${"%5B".repeat(80_000)}`],
  ]) {
    await inLanes(4, 40, () => service.send(post("/hooks/in/github", [type, signed(text)], text)));
  }
}

/** The largest wakes until they are refused, then the routes that describe runs. */
async function manyWakes(service) {
  const body = JSON.stringify({ text: "x".repeat(131_000), mode: "next-heartbeat" });
  let isRefused = false;
  await inLanes(4, 4000, async () => {
    if (isRefused) return;
    const { status } = await service.send(post("/hooks/wake", [AUTH, "Content-Type: application/json"], body));
    if (status === 429) isRefused = true;
  });
  const started = await service.post("/hooks/agent", { message: "events 2 1" });
  const { run_id } = JSON.parse(started.text);
  await inLanes(4, 100, () => service.get(`/api/runs/${run_id}`, [AUTH]));
  await inLanes(4, 100, () => service.get("/api/runs?limit=200", [AUTH]));
  if (!isRefused) return "no wake was refused";
}
