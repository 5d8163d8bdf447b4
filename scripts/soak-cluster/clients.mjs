import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../seeded-random.mjs";

/** A run that has not ended this long after its last event never will. */
const PATIENCE_MS = 120_000;
/** Unfinished runs of one client: more would only fill the queue. */
const OUTSTANDING = 12;
/** Runs of a group. */
const GROUP = 5;
const TERMINAL = ["done", "error", "aborted"];

/** @typedef {{ id: number, event: string, data: string }} StreamEvent */
/** @typedef {{ what: string, path: string, events: StreamEvent[], check: (event: StreamEvent, data: any) => void }} Stream */

/** Clients that start, read and cancel runs and groups at whichever front end is up, and check what they read. */
export class Clients {
  /** Runs in the order of their acknowledgement. @type {Map<string, { session: string, events: StreamEvent[] }>} */
  runs = new Map();
  /** @type {Map<string, { runs: string[], events: StreamEvent[] }>} */
  groups = new Map();
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
      const item = () => {
        const message = JSON.stringify({ key, deltas: below(20), pauseMs: below(20) });
        return { message, sessionKey: `hook:${number}-${below(3)}` };
      };
      const items = Array.from({ length: below(12) === 0 ? GROUP : 1 }, item);
      const { group, runs } = await this.#start(key, items, below);
      for (const [index, id] of runs.entries()) {
        assert.ok(!this.runs.has(id), `${key} gave the run of another key`);
        this.runs.set(id, { session: items[index].sessionKey, events: [] });
        track(this.#readToEnd(this.#runStream(id), below));
        if (below(6) === 0) track(this.#cancelLater(id, below));
      }
      if (group !== undefined) {
        this.groups.set(group, { runs, events: [] });
        track(this.#readToEnd(this.#groupStream(group), below));
      }
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
        if (response.ok) return text;
        // the database is away, or the process is about to end
        assert.equal(response.status, 503, `${path}: ${text}`);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
      }
      assert.ok(Date.now() < end, `${path}: no response`);
    }
  }

  /**
   * Checks that the store holds in the end what the readers got on the way, and files of the last start alone. Returns the
   * state of each run.
   */
  async check() {
    const below = seededRandom(7);
    /** @type {Map<string, string>} */
    const states = new Map();
    for (const [id, { events }] of this.runs) {
      const run = JSON.parse(await this.request(below, `/api/run_status?run_id=${id}`));
      assert.ok(run.done, `run ${id} is ${run.status}`);
      states.set(id, run.status);
      const whole = await this.#readWhole(this.#runStream(id), below);
      assert.deepEqual(whole, events, `run ${id}: the union of a reader is not the stored whole`);
      if (run.status !== "succeeded") continue;
      const { attempt } = JSON.parse(JSON.parse(whole.at(-1)?.data ?? "").response);
      const file = await this.request(below, `/api/runs/${id}/files/result.txt`);
      assert.equal(file, `${id} ${attempt}`, `run ${id}: the file of a worker that was lost`);
    }
    for (const [id, { events }] of this.groups) {
      const whole = await this.#readWhole(this.#groupStream(id), below);
      assert.deepEqual(whole, events, `group ${id}: the union of a reader is not the stored whole`);
      for (const { event, data } of whole) {
        if (event !== "item") continue;
        const { run_id: run, status } = JSON.parse(data);
        assert.equal(JSON.parse(await this.request(below, `/api/runs/${run}`)).status, status, `group ${id}`);
      }
    }
    return states;
  }

  /** Starts one run, or several as a group. @returns {Promise<{ group?: string, runs: string[] }>} */
  async #start(key, items, below) {
    const init = (body) => ({ method: "POST", body: JSON.stringify(body), headers: { "idempotency-key": key } });
    if (items.length === 1) {
      return { runs: [JSON.parse(await this.request(below, "/hooks/agent", init(items[0]))).run_id] };
    }
    const started = JSON.parse(await this.request(below, "/hooks/group", init({ items })));
    return { group: started.group_id, runs: started.run_ids };
  }

  /** @returns {Stream} */
  #runStream(id) {
    const { events } = this.runs.get(id) ?? { events: [] };
    return { what: `run ${id}`, path: `/api/stream?run_id=${id}`, events, check: checkEvent(id, events) };
  }

  /** @returns {Stream} */
  #groupStream(id) {
    const { events, runs } = this.groups.get(id) ?? { events: [], runs: [] };
    const check = ({ event }, data) => {
      if (event === "item") return assert.equal(data.run_id, runs[data.index], `group ${id}`);
      const told = events.map((item) => JSON.parse(item.data).index);
      assert.deepEqual([event, new Set(told).size, told.length], ["done", runs.length, runs.length], `group ${id}`);
    };
    return { what: `group ${id}`, path: `/api/groups/${id}/stream`, events, check };
  }

  /** Reads a stream once more, from its beginning. @param {Stream} stream */
  async #readWhole(stream, below) {
    const whole = { ...stream, events: [], check: () => undefined };
    while (!hasEnded(whole.events)) await this.#readOnce(whole, below, 15_000);
    return whole.events;
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

  /** Reads a stream to its terminal event, from one front end after the other. @param {Stream} stream */
  async #readToEnd(stream, below) {
    const { what, events } = stream;
    for (let end = Date.now() + PATIENCE_MS; !hasEnded(events); ) {
      assert.ok(Date.now() < end, `${what} does not end`);
      const before = events.length;
      await this.#readOnce(stream, below, below(10) === 0 ? below(300) : 15_000);
      if (events.length > before) end = Date.now() + PATIENCE_MS;
      this.streams += 1;
      await sleep(5);
    }
  }

  /** @param {Stream} stream */
  async #readOnce(stream, below, lifeMs) {
    const { what, path, events } = stream;
    const url = await this.#front(below);
    const headers = { authorization: `Bearer ${this.#token}`, "last-event-id": String(events.at(-1)?.id ?? -1) };
    try {
      const response = await fetch(url + path, { headers, signal: AbortSignal.timeout(lifeMs) });
      if (response.status === 503) return;
      assert.equal(response.status, 200, `stream of ${what}, acknowledged before`);
      let text = "";
      for await (const chunk of /** @type {ReadableStream} */ (response.body).pipeThrough(new TextDecoderStream())) {
        const frames = (text + chunk).split("\n\n");
        text = frames.pop() ?? "";
        for (const frame of frames) take(frame, stream);
      }
    } catch (error) {
      // a front end is gone, or this reader has had enough
      if (error instanceof assert.AssertionError) throw error;
    }
  }
}

const hasEnded = (events) => TERMINAL.includes(events.at(-1)?.event ?? "");

/** @param {string} frame @param {Stream} stream */
function take(frame, { what, events, check }) {
  const field = (name) => frame.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
  const event = field("event");
  if (event === undefined) return;
  const text = field("data") ?? "";
  const data = JSON.parse(text);
  if (event === "replay_meta") return assert.equal(data.replay_truncated, false);
  const last = events.at(-1);
  assert.ok(!hasEnded(events), `${what}: ${event} after ${last?.event}`);
  assert.equal(Number(field("id")), (last?.id ?? 0) + 1, `${what}: gap or repeat`);
  const taken = { id: Number(field("id")), event, data: text };
  check(taken, data);
  events.push(taken);
}

/** Checks an event of a run before it joins those before it. @param {string} id @param {StreamEvent[]} events */
function checkEvent(id, events) {
  return ({ event }, data) => {
    const last = events.at(-1);
    // each start begins anew; its deltas are numbered
    const expected = last?.event === "delta" ? JSON.parse(last.data).i + 1 : 0;
    if (event === "delta") assert.equal(data.i, expected, `run ${id}: an event is missing or doubled`);
    if (event === "done") assert.equal(JSON.parse(data.response).deltas, expected, `run ${id}: events are missing`);
  };
}
