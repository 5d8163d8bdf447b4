import assert from "node:assert/strict";
import { join } from "node:path";
import type { Agent } from "#src/service/agent/agent.js";
import { HookError } from "#src/service/hooks/hook-error.js";
import { createMemoryStore } from "#src/service/hooks/store/memory-store.js";
import { createPostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { createSqliteStore } from "#src/service/hooks/store/sqlite/sqlite-store.js";
import { startWorker } from "#src/service/worker/worker.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import { type RunningService, serviceStarter, until } from "../../../../../helpers/hooks/hook-service.js";
import { ids, names, readEvents, type SseEvent, upTo } from "../../../../../helpers/http/sse-reader.js";
import { newSchema, postgres } from "../../../../../helpers/postgres/cluster.js";

const startService = serviceStarter();

interface Started {
  readonly group_id: string;
  readonly run_ids: string[];
  readonly stream_url: string;
}

const json = async (response: Response) => (await response.json()) as Record<string, unknown>;
const post = async ({ post }: RunningService, body: object, headers = {}): Promise<Started> => {
  const response = await post("/hooks/group", body, headers);
  const text = await response.text();
  assert.equal(response.status, 202, text);
  return JSON.parse(text) as Started;
};
/** The group's stream to its end, by its signed address alone. */
const stream = async ({ url }: RunningService, { stream_url }: Started, headers = {}) =>
  readEvents(await fetch(url + stream_url, { headers }));
const items = (events: readonly SseEvent[]) =>
  events
    .filter(({ event }) => event === "item")
    .map(({ data }) => data as { index: number; run_id: string; status: string; error_code: string; files: object[] });
const countOf = async ({ hooks }: RunningService) => (await hooks.runs.list({ limit: 1000 })).runs.length;
const messages = (...texts: string[]) => ({ items: texts.map((message) => ({ message })) });

describe("POST /hooks/group", () => {
  const folder = temporaryFolder();

  it("starts all runs, and one stream tells of each end, the last event being done", async () => {
    const service = await startService();
    const started = await post(service, messages("a", "b", "c"));
    assert.equal(started.run_ids.length, 3);
    const events = await stream(service, started);
    assert.deepEqual(names(events), ["replay_meta", "item", "item", "item", "done"]);
    assert.deepEqual(ids(events), upTo(4));
    assert.deepEqual(events.at(-1)!.data, { size: 3 });
    const ended = items(events).sort((a, b) => a.index - b.index);
    assert.deepEqual(
      ended.map(({ index, run_id, status }) => [index, run_id, status]),
      started.run_ids.map((id, index) => [index, id, "succeeded"]),
    );
    for (const [index, id] of started.run_ids.entries()) {
      assert.equal((await service.hooks.runs.get(id)).message, "abc"[index]);
    }
  });

  it("takes the fields of a start for each item, and defaults for those that lack them", async () => {
    const service = await startService({ config: { hooks_allow_request_session_key: true } });
    const defaults = { name: "batch", sessionKey: "hook:x", tags: ["spring"], priority: 2, timeoutSeconds: 60 };
    const own = { message: "b", name: "own", session_key: "hook:y", tags: ["b"], priority: 0, deadlineSeconds: 99 };
    const { run_ids } = await post(service, { items: [{ message: "a" }, own], defaults });
    const [a, b] = await Promise.all(run_ids.map((id) => service.hooks.runs.get(id)));
    assert.deepEqual(
      [a!.name, a!.sessionKey, a!.tags, a!.priority, a!.timeoutSeconds, a!.deadlineMark],
      ["batch", "hook:x", ["spring"], 2, 60, null],
    );
    assert.deepEqual([b!.name, b!.sessionKey, b!.tags, b!.priority], ["own", "hook:y", ["b"], 0]);
    assert.notEqual(b!.deadlineMark, null);
  });

  it("runs items that name no session at the same time", async () => {
    const service = await startService({ config: { limits: { running: 3 } } });
    const { run_ids } = await post(service, messages("hold", "hold", "hold"));
    await until(async () => service.hooks.runs.stats().running === 3);
    for (const id of run_ids) await service.hooks.runs.cancel(id);
  });

  it("is live, and a reader resumes after any id", async () => {
    const release = new Map<string, () => void>();
    const agent: Agent = async ({ message }) => {
      if (message === "fail") throw new Error("no paint");
      await new Promise<void>((resolve) => release.set(message, resolve));
      return { response: message };
    };
    const service = await startService({ agent });
    const started = await post(service, messages("a", "fail", "c"));
    const first = readEvents(await fetch(service.url + started.stream_url), 2);
    const [, failed] = await first;
    assert.equal(failed!.id, 1);
    const data = failed!.data as Record<string, unknown>;
    assert.deepEqual([data.index, data.status, data.error, data.error_code], [1, "failed", "no paint", "agent_failed"]);
    const live = readEvents(await fetch(`${service.url}${started.stream_url}&last_event_id=1`), 2);
    await until(() => release.size === 2);
    release.get("c")!();
    assert.deepEqual(items(await live), [{ ...items(await live)[0]!, index: 2, status: "succeeded" }]);
    release.get("a")!();
    const rest = await stream(service, started, { "last-event-id": "2" });
    assert.deepEqual(
      [names(rest), ids(rest)],
      [
        ["replay_meta", "item", "done"],
        [3, 4],
      ],
    );
    const done = await fetch(service.url + started.stream_url, { headers: { "last-event-id": "4" } });
    assert.equal(done.status, 204);
  });

  it("tells of an end whose group the store cannot name at that moment", async () => {
    const groupOf = () => Promise.reject(new HookError("store_unavailable"));
    let release: (() => void) | undefined;
    const agent: Agent = async () => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return { response: "" };
    };
    const service = await startService({ agent, store: { ...createMemoryStore(), groupOf } });
    const started = await post(service, messages("a"));
    const response = await fetch(service.url + started.stream_url);
    await until(() => release !== undefined);
    release!();
    assert.deepEqual(ids(await readEvents(response)), [1, 2]);
  });

  it("names the files of each item, whose addresses are signed", async () => {
    const agent: Agent = async ({ message }, { addFile, emit }) => {
      const { writeFile } = await import("node:fs/promises");
      const path = join(folder(), `${message}.txt`);
      await writeFile(path, message);
      const { url } = addFile({ path });
      emit("file", { url });
      return { response: "" };
    };
    const service = await startService({ agent });
    const started = await post(service, messages("x", "y"));
    const all = items(await stream(service, started));
    for (const { index, files } of all) {
      const [file] = files as { name: string; url: string }[];
      assert.equal(file!.name, `${"xy"[index]}.txt`);
      assert.equal(await (await fetch(service.url + file!.url)).text(), "xy"[index]);
    }
    assert.equal(all.length, 2);
  });

  it("a repeated request returns the same runs, another one is refused", async () => {
    const service = await startService();
    const headers = { "idempotency-key": "k" };
    const first = await post(service, messages("a", "b"), headers);
    const again = await service.post("/api/hooks/group", messages("a", "b"), headers);
    assert.deepEqual([again.status, again.headers.get("idempotent-replayed")], [202, "true"]);
    assert.deepEqual((await json(again)).run_ids, first.run_ids);
    const fromBody = await service.post("/hooks/group", { ...messages("a", "b"), idempotencyKey: "k" });
    assert.deepEqual((await json(fromBody)).group_id, first.group_id);
    for (const body of [messages("a", "c"), messages("a"), { ...messages("a", "b"), defaults: { priority: 1 } }]) {
      assert.equal((await service.post("/hooks/group", body, headers)).status, 422);
    }
    assert.equal(await countOf(service), 2);
  });

  const message = "x";
  for (const [what, body, sentence] of [
    ["no items", {}, "items: is required"],
    ["items that are no list", { items: {} }, "items: expected a list"],
    ["an empty list", { items: [] }, "items: expected at least 1"],
    ["1,001 items", { items: Array.from({ length: 1001 }, () => ({ message })) }, "items: expected at most 1000"],
    ["an item that is no object", { items: [{ message }, 5] }, "items.1: expected a JSON object"],
    ["an item without a message", { items: [{ message }, {}] }, "items.1: message: is required"],
    [
      "a key of an item",
      { items: [{ message, idempotencyKey: "k" }] },
      /^items\.0: idempotencyKey: not supported in an item/,
    ],
    [
      "a session",
      { items: [{ message, sessionKey: "hook:y" }] },
      /^items\.0: sessionKey override is disabled: "sessionKey" needs /,
    ],
    ["a graph", { items: [{ message }, { message, graph: "g" }] }, /^items\.1: graph: this agent has no graphs/],
    [
      "a deadline before the delay",
      { items: [{ message }], defaults: { delaySeconds: 5, deadlineSeconds: 5 } },
      /^items\.0: deadlineSeconds: expected a number above delaySeconds \(5\)/,
    ],
    ["defaults that are no object", { items: [{ message }], defaults: "x" }, "defaults: expected an object"],
    [
      "wrong defaults",
      { items: [{ message }], defaults: { priority: 101 } },
      "defaults.priority: expected at most 100",
    ],
    ["a message that the agent refuses", { items: [{ message }, { message: "bad" }] }, "items.1: bad message"],
  ] as const) {
    it(`refuses ${what}, and starts nothing`, async () => {
      const { LatentkitError } = await import("latentkit");
      const check = (text: string) => {
        if (text === "bad") throw new LatentkitError("input.invalid", "bad message");
      };
      const service = await startService({ agent: Object.assign(async () => ({ response: "" }), { check }) });
      const response = await service.post("/hooks/group", body);
      const { error } = await json(response);
      assert.equal(response.status, 400);
      if (typeof sentence === "string") assert.equal(error, sentence);
      else assert.match(String(error), sentence);
      assert.equal(await countOf(service), 0);
    });
  }

  it("holds the limits as a whole", async () => {
    const limits = { running: 1, queued: 3, queued_per_session: 2, starts_per_10s: 4, group_body_bytes: 200 };
    const service = await startService({ config: { limits, hooks_allow_request_session_key: true } });
    const status = async (body: object) => (await service.post("/hooks/group", body)).status;
    assert.equal(await status(messages("x".repeat(200))), 413);
    await service.start("hold");
    await until(() => service.hooks.runs.stats().running === 1);
    assert.equal(await status(messages("a")), 202);
    assert.equal(await status(messages("a", "b", "c")), 429);
    const sessionKey = "hook:s";
    assert.equal(await status({ items: [{ message: "a" }, { message: "b" }], defaults: { sessionKey } }), 202);
    assert.equal(await countOf(service), 4);
    // a group counts as one start
    const limited = await service.post("/hooks/group", messages("a"));
    assert.deepEqual([limited.status, (await json(limited)).code], [429, "rate_limited"]);
  });

  it("refuses a stream without the group's own signature, and one that does not exist", async () => {
    const service = await startService();
    const [one, two] = [await post(service, messages("a")), await post(service, messages("b"))];
    const signature = one.stream_url.split("?")[1];
    const path = (id: string) => `/api/groups/${id}/stream`;
    assert.equal((await fetch(`${service.url}${path(two.group_id)}?${signature}`)).status, 401);
    assert.equal((await fetch(service.url + path(one.group_id))).status, 401);
    // nor does it open a run of the group
    assert.equal((await fetch(`${service.url}/api/stream?run_id=${one.run_ids[0]}&${signature}`)).status, 401);
    for (const id of ["00000000-0000-4000-8000-000000000000", one.run_ids[0]!]) {
      const unknown = await service.get(path(id));
      assert.deepEqual([unknown.status, (await json(unknown)).code], [404, "group_not_found"]);
    }
  });

  it("says that runs before the oldest one kept are gone", async () => {
    const service = await startService({ config: { limits: { retention_runs: 2 } } });
    const started = await post(service, messages("a", "b", "c", "d"));
    await until(
      async () =>
        (await service.get(`/api/runs/${started.run_ids[0]}`)).status === 404 || (await countOf(service)) <= 2,
    );
    const events = await stream(service, started);
    const meta = events[0]!.data as Record<string, unknown>;
    assert.equal(meta.replay_truncated, true);
    assert.deepEqual(ids(events), [3, 4, 5]);
  });

  it("is resumed after a restart, with runs that had not started", async () => {
    const path = join(folder(), "store.db");
    const config = { limits: { running: 1, drain_seconds: 0 } };
    let service = await startService({ store: createSqliteStore(path), config });
    const started = await post(service, messages("a", "hold", "c"));
    const [, first] = await readEvents(await fetch(service.url + started.stream_url), 2);
    assert.equal((first!.data as { index: number }).index, 0);
    await service.listening.close(0);
    service = await startService({ store: createSqliteStore(path), config });
    const rest = await stream(service, started, { "last-event-id": "1" });
    assert.deepEqual(
      items(rest).map(({ index, status }) => [index, status]),
      [
        [1, "interrupted"],
        [2, "succeeded"],
      ],
    );
    assert.deepEqual(ids(rest), [2, 3, 4]);
  });
});

describe("POST /hooks/group at front ends of PostgreSQL", () => {
  const url = postgres();

  it("starts the runs in workers, and any front end streams the group", async () => {
    const schema = newSchema();
    const newStore = () => createPostgresStore({ url, schema, connections: 3 });
    const config = { hooks_allow_request_session_key: true, limits: { queued_per_session: 20 } };
    const front = () => startService({ store: newStore(), workers: true, config });
    const [one, two] = [await front(), await front()];
    // every other item in one session
    const list = upTo(40).map((n) => ({ message: String(n), ...(n % 2 === 0 && { sessionKey: "hook:s" }) }));
    const started = await post(one, { items: list });
    const waiting = Promise.all([stream(one, started), stream(two, started)]);
    const silent = { debug() {}, info() {}, warn() {}, error() {} };
    const inSession: number[] = [];
    const agent: Agent = async ({ message, sessionKey }) => {
      if (sessionKey === "hook:s") inSession.push(Number(message));
      return { response: message };
    };
    const worker = await startWorker({ agent, store: newStore(), logger: silent, concurrency: 4 });
    try {
      for (const events of await waiting) {
        assert.deepEqual(ids(events), upTo(41));
        assert.deepEqual(
          items(events)
            .map(({ run_id }) => run_id)
            .sort(),
          [...started.run_ids].sort(),
        );
      }
      assert.deepEqual(
        inSession,
        upTo(20).map((n) => 2 * n),
      );
    } finally {
      await worker.close(0);
    }
  });

  it("starts none of a group that a session's queue cannot hold", async () => {
    const store = createPostgresStore({ url, schema: newSchema(), connections: 3 });
    const config = { hooks_allow_request_session_key: true, limits: { queued_per_session: 2 } };
    const service = await startService({ store, workers: true, config });
    const body = { ...messages("a", "b", "c", "d"), defaults: { sessionKey: "hook:s" } };
    const response = await service.post("/hooks/group", body, { "idempotency-key": "k" });
    assert.deepEqual([response.status, (await json(response)).code], [429, "queue_full"]);
    assert.equal(await countOf(service), 0);
    assert.equal((await service.post("/hooks/group", messages("a"), { "idempotency-key": "k" })).status, 202);
  });
});
