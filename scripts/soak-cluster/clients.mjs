import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../seeded-random.mjs";

/** A run that has not ended this long after its last event never will. */
const PATIENCE_MS = 120_000;
/** Unfinished runs of one client: more would only fill the queue. */
const OUTSTANDING = 12;
const TERMINAL = ["done", "error", "aborted"];

/** @typedef {{ id: number, event: string, data: string }} StreamEvent */

/** Clients that start, read and cancel runs at whichever front end is up, and check what they read. */
export class Clients {
  /** Runs in the order of their acknowledgement. @type {Map<string, { session: string, events: StreamEvent[] }>} */
  runs = new Map();
  streams = 0;
  isOver = false;
  #fronts;
  #token;
  #seed;

  /** @param {{ fronts: { url: string | null }[], token: string, seed: number }} options */
  constructor({ fronts, token, seed }) {
    this.#fronts = fronts;
    this.#token = token;
    this.#seed = seed;
  }

  /** Works as one client until `isOver`, then until its runs have ended. @param {number} number */
  async work(number) {
    const below = seededRandom(this.#seed * 1000 + number);
    const open = new Set();
    const track = (work) => {
      const tracked = work.finally(() => open.delete(tracked));
      open.add(tracked);
      // awaited at the end, or by the race
      tracked.catch(() => undefined);
    };
    for (let n = 0; !this.isOver; n++) {
      if (open.size >= OUTSTANDING) {
        await Promise.race(open);
        continue;
      }
      const key = `key-${number}-${n}`;
      const session = `hook:${number}-${below(3)}`;
      const message = JSON.stringify({ key, deltas: below(20), pauseMs: below(20) });
      const body = JSON.stringify({ message, sessionKey: session });
      const init = { method: "POST", body, headers: { "idempotency-key": key } };
      const { run_id: id } = JSON.parse(await this.request(below, "/hooks/agent", init));
      assert.ok(!this.runs.has(id), `${key} gave the run of another key`);
      this.runs.set(id, { session, events: [] });
      track(this.#readToEnd(id, below));
      if (below(6) === 0) track(this.#cancelLater(id, below));
      await sleep(below(40));
    }
    await Promise.all(open);
  }

  /** Returns the response of any front end, however often they die on the way. */
  async request(below, path, init = {}) {
    for (const end = Date.now() + PATIENCE_MS; ; await sleep(20)) {
      const url = await this.#front(below);
      try {
        const headers = { authorization: `Bearer ${this.#token}`, "content-type": "application/json", ...init.headers };
        const response = await fetch(url + path, { ...init, headers, signal: AbortSignal.timeout(12_000) });
        const text = await response.text();
        if (response.status === 200) return text;
        // the database is away, or the process is about to end
        assert.equal(response.status, 503, `${path}: ${text}`);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
      }
      assert.ok(Date.now() < end, `${path}: no response`);
    }
  }

  /** Checks that the store holds in the end what the readers got on the way, and files of the last start alone. */
  async check() {
    const below = seededRandom(7);
    const states = {};
    for (const [id, { events }] of this.runs) {
      const run = JSON.parse(await this.request(below, `/api/run_status?run_id=${id}`));
      assert.ok(run.done, `run ${id} is ${run.status}`);
      states[run.status] = (states[run.status] ?? 0) + 1;
      /** @type {StreamEvent[]} */
      const whole = [];
      while (!hasEnded(whole)) await this.#readOnce(id, whole, below, 15_000);
      assert.deepEqual(whole, events, `run ${id}: the union of a reader is not the stored whole`);
      if (run.status !== "succeeded") continue;
      const { attempt } = JSON.parse(JSON.parse(whole.at(-1)?.data ?? "").response);
      const file = await this.request(below, `/api/runs/${id}/files/result.txt`);
      assert.equal(file, `${id} ${attempt}`, `run ${id}: the file of a worker that was lost`);
    }
    return states;
  }

  /** Address of a front end that is up. */
  async #front(below) {
    for (;;) {
      const urls = this.#fronts.flatMap(({ url }) => url ?? []);
      if (urls.length > 0) return urls[below(urls.length)];
      await sleep(5);
    }
  }

  async #cancelLater(id, below) {
    await sleep(below(600));
    const { done, status } = JSON.parse(await this.request(below, `/api/runs/${id}/cancel`, { method: "POST" }));
    assert.ok(done, `cancel returned ${status}`);
  }

  /** Reads a run's stream to its terminal event, from one front end after the other. */
  async #readToEnd(id, below) {
    const { events } = this.runs.get(id) ?? { events: [] };
    for (let end = Date.now() + PATIENCE_MS; !hasEnded(events); ) {
      assert.ok(Date.now() < end, `run ${id} does not end`);
      const before = events.length;
      await this.#readOnce(id, events, below, below(10) === 0 ? below(300) : 15_000);
      if (events.length > before) end = Date.now() + PATIENCE_MS;
      this.streams += 1;
      await sleep(5);
    }
  }

  async #readOnce(id, events, below, lifeMs) {
    const url = await this.#front(below);
    const headers = { authorization: `Bearer ${this.#token}`, "last-event-id": String(events.at(-1)?.id ?? -1) };
    try {
      const response = await fetch(`${url}/api/stream?run_id=${id}`, { headers, signal: AbortSignal.timeout(lifeMs) });
      if (response.status === 503) return;
      assert.equal(response.status, 200, `stream of ${id}, acknowledged before`);
      let text = "";
      for await (const chunk of /** @type {ReadableStream} */ (response.body).pipeThrough(new TextDecoderStream())) {
        const frames = (text + chunk).split("\n\n");
        text = frames.pop() ?? "";
        for (const frame of frames) take(frame, id, events);
      }
    } catch (error) {
      // a front end is gone, or this reader has had enough
      if (error instanceof assert.AssertionError) throw error;
    }
  }
}

const hasEnded = (events) => TERMINAL.includes(events.at(-1)?.event ?? "");

function take(frame, id, events) {
  const field = (name) => frame.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
  const event = field("event");
  if (event === undefined) return;
  const data = JSON.parse(field("data"));
  if (event === "replay_meta") return assert.equal(data.replay_truncated, false);
  const last = events.at(-1);
  assert.ok(!hasEnded(events), `run ${id}: ${event} after ${last?.event}`);
  assert.equal(Number(field("id")), (last?.id ?? 0) + 1, `run ${id}: gap or repeat`);
  // each start begins anew; its deltas are numbered
  const expected = last?.event === "delta" ? JSON.parse(last.data).i + 1 : 0;
  if (event === "delta") assert.equal(data.i, expected, `run ${id}: an event is missing or doubled`);
  if (event === "done") assert.equal(JSON.parse(data.response).deltas, expected, `run ${id}: events are missing`);
  events.push({ id: Number(field("id")), event, data: field("data") });
}
