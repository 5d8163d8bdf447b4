import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Agent } from "#src/service/agent/agent.js";
import { FakeClock } from "../../../../../helpers/hooks/fake-clock.js";
import {
  bearer,
  type RunningService,
  serviceStarter,
  TOKEN,
  until,
} from "../../../../../helpers/hooks/hook-service.js";
import { RawClient, requestText } from "../../../../../helpers/http/raw-http.js";
import { ids, names, readEvents, upTo } from "../../../../../helpers/http/sse-reader.js";

const startService = serviceStarter();

const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const AUTH = `Authorization: Bearer ${TOKEN}`;

/** A finished run with `count` deltas: status, deltas, done. */
async function finishedRun(service: RunningService, count: number) {
  const run = await service.start(`emit ${count}`);
  await until(async () => /"done":true/.test(await (await service.get(run.status_url)).text()));
  return { ...run, path: `/api/stream?run_id=${run.run_id}` };
}

const openStreams = async ({ get }: RunningService) =>
  Number(/^latentkit_streams_open (\d+)$/m.exec(await (await get("/metrics")).text())?.[1]);

describe("stream of a run", () => {
  it("replay_meta without an id, then ids from 1, ends after the terminal event", async () => {
    const service = await startService();
    const { path } = await finishedRun(service, 3);
    const response = await service.get(path);
    assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
    assert.equal(response.headers.get("cache-control"), "no-store, no-transform");
    assert.equal(response.headers.get("x-accel-buffering"), "no");
    const text = await response.clone().text();
    assert.match(text, /^event: replay_meta\ndata: \{[^\n]*\}\nretry: 3000\n\nid: 1\nevent: status\n/);
    const events = await readEvents(response);
    assert.deepEqual(names(events), ["replay_meta", "status", "delta", "delta", "delta", "done"]);
    assert.deepEqual(ids(events), [1, 2, 3, 4, 5]);
    assert.deepEqual(events[0], {
      id: undefined,
      event: "replay_meta",
      data: { replay_truncated: false, oldest_event_id: 1, requested_last_event_id: -1 },
    });
    assert.deepEqual(events[2]!.data, { delta: "d1" });
    assert.deepEqual(events.at(-1)!.data, { response: "emit 3" });
  });

  it("is live", async () => {
    const release: (() => void)[] = [];
    const agent: Agent = async (_run, { emit }) => {
      for (let i = 0; i < 3; i++) {
        await new Promise<void>((resolve) => release.push(resolve));
        emit("delta", { delta: i });
      }
      return { response: "ok" };
    };
    const service = await startService({ agent });
    const { stream_url } = await service.start("x");
    const client = new RawClient(service.port).send(requestText(`GET ${stream_url}`, []));
    for (let i = 0; i < 3; i++) {
      await until(() => release.length === i + 1);
      assert.doesNotMatch(client.text, new RegExp(`"delta":${i}`));
      release[i]!();
      await until(() => client.text.includes(`"delta":${i}`));
    }
    await until(() => client.text.includes("event: done"));
    client.destroy();
  });

  const cursors: [string, string, Record<string, string>, number[] | number][] = [
    ["no cursor", "", {}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
    ["query -1", "-1", {}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
    ["query -5", "-5", {}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
    ["query 0", "0", {}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
    ["query 3", "3", {}, [4, 5, 6, 7, 8, 9, 10]],
    ["header 7 with query 3", "3", { "last-event-id": "7" }, [8, 9, 10]],
    ["header 7 with query abc", "abc", { "last-event-id": "7" }, [8, 9, 10]],
    ["a blank header with query 3", "3", { "last-event-id": " " }, [4, 5, 6, 7, 8, 9, 10]],
    ["query at the end", "10", {}, []],
    ["query beyond the end", "11", {}, []],
    ["query 2^64", "18446744073709551616", {}, []],
    ["query of 5,000 digits", "9".repeat(5000), {}, []],
    ["header at the end", "", { "last-event-id": "10" }, 204],
    ["header beyond the end", "", { "last-event-id": "99999999999999999999" }, 204],
    ["query 1.5", "1.5", {}, 400],
    ["query abc", "abc", {}, 400],
    ["query 1e3", "1e3", {}, 400],
    ["query 0x10", "0x10", {}, 400],
    ["query NaN", "NaN", {}, 400],
    ["header abc", "", { "last-event-id": "abc" }, 400],
    ["header 1, 2", "3", { "last-event-id": "1, 2" }, 400],
  ];
  for (const [what, query, headers, expected] of cursors) {
    it(`from ${what}: ${expected}`, async () => {
      const service = await startService();
      const { path } = await finishedRun(service, 8);
      const response = await service.get(`${path}${query === "" ? "" : `&last_event_id=${query}`}`, headers);
      if (typeof expected === "number") {
        assert.equal(response.status, expected);
        if (expected === 204) assert.equal(await response.text(), "");
        return;
      }
      assert.equal(response.status, 200);
      const events = await readEvents(response);
      assert.equal(events[0]!.event, "replay_meta");
      assert.deepEqual(ids(events), expected);
    });
  }

  it("Last-Event-ID at the newest event of a live run waits for the next", async () => {
    const service = await startService();
    const { run_id, stream_url } = await service.start("emit 2\nhold");
    const events = readEvents(await fetch(service.url + stream_url, { headers: { "last-event-id": "99" } }));
    await service.post(`/api/runs/${run_id}/cancel`, "");
    assert.deepEqual(names(await events), ["replay_meta", "aborted"]);
  });

  it("resumed after every event, it is complete", async () => {
    const agent: Agent = async (_run, { emit }) => {
      for (let i = 0; i < 40; i++) {
        emit("delta", { delta: i });
        if (i % 4 === 0) await new Promise((resolve) => setTimeout(resolve, 3));
      }
      return { response: "ok" };
    };
    const service = await startService({ agent });
    const { run_id } = await service.start("x");
    const seen: number[] = [];
    for (let connections = 0; connections < 100; connections++) {
      const last = seen.at(-1);
      const headers: Record<string, string> = last === undefined ? {} : { "last-event-id": String(last) };
      const cut = new AbortController();
      const response = await fetch(`${service.url}/api/stream?run_id=${run_id}`, {
        headers: { ...bearer, ...headers },
        signal: cut.signal,
      });
      if (response.status === 204) break;
      // replay_meta and one more
      const events = await readEvents(response, 2);
      cut.abort();
      seen.push(...ids(events));
    }
    assert.deepEqual(seen, upTo(42));
  });

  it("opened in the tick of the run's end, it is complete", async () => {
    const service = await startService({ config: { limits: { running_per_session: 4 } } });
    for (let i = 0; i < 40; i++) {
      const { stream_url } = await service.start("emit 1");
      const responses = Array.from({ length: 4 }, async (_, n) => {
        for (let turn = 0; turn < n; turn++) await new Promise((resolve) => setImmediate(resolve));
        return readEvents(await fetch(service.url + stream_url));
      });
      for (const events of await Promise.all(responses)) assert.deepEqual(ids(events), [1, 2, 3]);
    }
  });

  it("cancelled run: all live streams end with aborted", async () => {
    const service = await startService();
    const { run_id, stream_url } = await service.start("emit 1\nhold");
    const streams = await Promise.all([1, 2, 3].map(() => fetch(service.url + stream_url)));
    await service.post(`/api/runs/${run_id}/cancel`, "");
    for (const stream of streams) assert.equal(names(await readEvents(stream)).at(-1), "aborted");
    await until(async () => (await openStreams(service)) === 0);
  });

  it("a reader that leaves does not end the run", async () => {
    const service = await startService();
    const { stream_url, status_url } = await service.start("hold");
    const cut = new AbortController();
    await readEvents(await fetch(service.url + stream_url, { signal: cut.signal }), 2);
    cut.abort();
    await until(async () => (await openStreams(service)) === 0);
    assert.match(await (await service.get(status_url)).text(), /"status":"running"/);
  });

  it("trimmed run: replay_meta reports it to readers that miss events", async () => {
    const service = await startService({ config: { limits: { run_events: 10 } } });
    const { path } = await finishedRun(service, 40);
    const all = await readEvents(await service.get(path));
    assert.deepEqual(all[0]!.data, {
      replay_truncated: true,
      oldest_event_id: ids(all)[0],
      requested_last_event_id: -1,
    });
    assert.deepEqual(ids(all).at(-1), 42);
    const resumed = await readEvents(await service.get(`${path}&last_event_id=41`));
    assert.equal((resumed[0]!.data as { replay_truncated: boolean }).replay_truncated, false);
    assert.deepEqual(ids(resumed), [42]);
  });

  it("HEAD opens no stream", async () => {
    const service = await startService();
    const { stream_url } = await service.start("hold");
    const response = await fetch(service.url + stream_url, { method: "HEAD" });
    assert.deepEqual([response.status, await response.text()], [200, ""]);
    assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
    assert.equal(await openStreams(service), 0);
  });

  for (const [what, query, status] of [
    ["no run_id", "", 400],
    ["a blank run_id", "?run_id=", 400],
    ["a repeated run_id", `?run_id=${UNKNOWN}&run_id=${UNKNOWN}`, 400],
    ["an unknown run_id", `?run_id=${UNKNOWN}`, 404],
    ["__proto__", "?run_id=__proto__", 404],
    ["an array", "?run_id[]=x", 400],
    ["10 KB", `?run_id=${"a".repeat(10_000)}`, 404],
    ["a repeated cursor", `?run_id=${UNKNOWN}&last_event_id=1&last_event_id=2`, 400],
  ] as const) {
    it(`${what}: ${status}, without a token 401`, async () => {
      const { get, url } = await startService();
      assert.equal((await get(`/api/stream${query}`)).status, status);
      assert.equal((await fetch(`${url}/api/stream${query}`)).status, 401);
    });
  }
});

describe("access to a stream", () => {
  const day = 24 * 3600 * 1000;

  it("the signed URL opens its run, unchanged and until it expires", async () => {
    const clock = new FakeClock();
    const config = { hooks_token: ["new", TOKEN], limits: { retention_hours: 48, failed_auth_per_minute: 1000 } };
    const service = await startService({ clock, config });
    const { stream_url, run_id } = await service.start("hold");
    const other = await service.start("hold");
    const status = async (url: string) => (await fetch(service.url + url, { method: "HEAD" })).status;
    assert.equal(await status(stream_url), 200);
    const parts = new URL(stream_url, service.url).searchParams;
    const expires = Number(parts.get("expires"));
    for (const bad of [
      stream_url.replace(run_id, other.run_id),
      stream_url.replace(`expires=${expires}`, `expires=${expires + 1}`),
      stream_url.replace(`expires=${expires}`, `expires=+${expires}`),
      stream_url.replace(/signature=./, (start) => (start.endsWith("A") ? "signature=B" : "signature=A")),
      stream_url.replace(/signature=.*/, ""),
      stream_url.replace(/signature=.*/, "signature="),
      `${stream_url}&signature=${parts.get("signature")}`,
      `${stream_url}&expires=${expires}`,
      `${stream_url}&run_id=${run_id}`,
    ]) {
      assert.equal(await status(bad), 401, bad);
    }
    clock.jumpWall(400 * day);
    assert.equal(await status(stream_url), 200, "a jump of the wall clock expires nothing");
    assert.ok(expires * 1000 > Date.UTC(2025, 0, 1) + 2 * day);
  });

  it("the signature expires with the retention", async () => {
    const clock = new FakeClock();
    const service = await startService({ clock });
    const { stream_url } = await service.start("x");
    const delayed = await service.start("x", { delaySeconds: 7200 });
    const status = async (path: string) => (await fetch(service.url + path, { method: "HEAD" })).status;
    await clock.advance(23 * 3600 * 1000);
    assert.equal(await status(stream_url), 200);
    // the retention, an hour in the queue, and three attempts of an hour with two delays of five minutes
    await clock.advance(5 * 3600 * 1000 + 600_000 - 1000);
    assert.equal(await status(stream_url), 404);
    await clock.advance(2000);
    assert.equal(await status(stream_url), 401);
    await clock.advance(7200_000 - 2000);
    assert.equal(await status(delayed.stream_url), 404);
    await clock.advance(2000);
    assert.equal(await status(delayed.stream_url), 401);
  });

  it("the signature survives the token's rotation, not its removal", async () => {
    const first = await startService({ config: { hooks_token: TOKEN } });
    const { stream_url } = await first.start("x");
    const query = new URL(stream_url, first.url).searchParams;
    for (const [hooks_token, status] of [
      [["new", TOKEN], 404],
      ["new", 401],
    ] as const) {
      const service = await startService({ config: { hooks_token } });
      assert.equal((await fetch(`${service.url}/api/stream?${query}`)).status, status);
    }
  });

  it("stream_auth decides", async () => {
    for (const [stream_auth, byToken, bySignature, byNothing] of [
      ["token", 200, 200, 401],
      ["signed", 401, 200, 401],
      ["none", 200, 200, 200],
    ] as const) {
      const service = await startService({ config: { stream_auth } });
      const { stream_url, run_id } = await service.start("x");
      const bare = `/api/stream?run_id=${run_id}`;
      assert.equal((await service.get(bare)).status, byToken, stream_auth);
      assert.equal((await fetch(service.url + stream_url)).status, bySignature, stream_auth);
      assert.equal((await fetch(service.url + bare)).status, byNothing, stream_auth);
      assert.equal(stream_url === bare, stream_auth === "none");
    }
  });

  it("the signature is in no log", async () => {
    const service = await startService();
    const { stream_url } = await service.start("x");
    await (await fetch(service.url + stream_url)).text();
    await until(() => service.log().includes('"route":"stream"'));
    assert.ok(!service.log().includes(new URL(stream_url, service.url).searchParams.get("signature")!));
  });
});

describe("limits of readers", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;

  it("the 21st stream of a run: 429 until one leaves", async () => {
    const service = await startService();
    const { stream_url } = await service.start("hold");
    const cut = new AbortController();
    const streams = Array.from({ length: 19 }, () => fetch(service.url + stream_url));
    assert.ok((await Promise.all(streams)).every(({ status }) => status === 200));
    assert.equal((await fetch(service.url + stream_url, { signal: cut.signal })).status, 200);
    const refused = await fetch(service.url + stream_url);
    assert.equal(refused.status, 429);
    assert.ok(Number(refused.headers.get("retry-after")) >= 1);
    assert.equal(((await refused.json()) as { code: string }).code, "rate_limited");
    cut.abort();
    await until(async () => (await fetch(service.url + stream_url, { method: "GET" })).status === 200);
  });

  it("1,000 streams all get the event, the 1,001st a 429", async () => {
    const service = await startService({ config: { limits: { streams_per_run: 1000 } } });
    const { run_id, stream_url } = await service.start("hold");
    const request = requestText(`GET ${stream_url}`, []);
    const clients: RawClient[] = [];
    for (let i = 0; i < 1000; i += 50) {
      const more = Array.from({ length: 50 }, () => new RawClient(service.port).send(request));
      await until(() => more.every(({ text }) => text.includes("event: replay_meta")));
      clients.push(...more);
    }
    const last = new RawClient(service.port).send(request);
    assert.equal((await last.response()).status, 429);
    last.destroy();
    assert.equal((await service.get("/health")).status, 200);
    await service.post(`/api/runs/${run_id}/cancel`, "");
    await until(() => clients.every(({ text }) => text.includes("event: aborted")));
    for (const client of clients) client.destroy();
    await until(async () => (await openStreams(service)) === 0);
  });

  it("10,000 connections leave nothing behind @long", async () => {
    const service = await startService({ config: { limits: { streams_per_run: 100 } } });
    const { stream_url } = await service.start("hold");
    const request = requestText(`GET ${stream_url}`, []);
    const connectAndLeave = async () => {
      const client = new RawClient(service.port).send(request);
      await until(() => client.text.includes("event: replay_meta"));
      client.destroy();
      await client.closed;
    };
    const lane = async (count: number) => {
      for (let i = 0; i < count; i++) await connectAndLeave();
    };
    const round = async (count: number) => {
      await Promise.all(Array.from({ length: 20 }, () => lane(count / 20)));
      await until(async () => (await openStreams(service)) === 0, "all streams closed");
      await until(() => service.hooks.runs.stats().followed === 0, "nobody follows");
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    await round(1000);
    const before = await round(1000);
    const after = await round(8000);
    const perConnect = (after - before) / 8000;
    assert.ok(perConnect < 1500, `${perConnect.toFixed(0)} bytes are left of each connect`);
  });
});

describe("slow readers", () => {
  const filler = "x".repeat(1000);
  const flood: Agent = async (_run, { emit }) => {
    for (let i = 0; i < 50_000; i++) {
      emit("delta", { delta: filler });
      if (i % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    return { response: "ok" };
  };
  const limits = { run_events: 60_000, run_bytes: 100_000_000, slow_reader_bytes: 100_000, slow_reader_seconds: 1 };

  it("a paused reader of 50,000 events is cut, resumes by id, delays nobody @long", async () => {
    const service = await startService({ agent: flood, config: { limits } });
    const unsent: number[] = [];
    service.listening.server.on("connection", (socket) => {
      const timer = setInterval(() => unsent.push(socket.writableLength), 5);
      socket.once("close", () => clearInterval(timer));
    });
    const { run_id, stream_url } = await service.start("x");
    const paused = new RawClient(service.port).send(requestText(`GET ${stream_url}`, []));
    await until(() => paused.text.includes("event: replay_meta"));
    paused.socket.pause();
    const others = await readEvents(await fetch(service.url + stream_url));
    assert.deepEqual(ids(others), upTo(50_002));
    assert.ok(Math.max(...unsent) < limits.slow_reader_bytes + 50_000, `${Math.max(...unsent)} bytes were waiting`);
    await until(async () => (await openStreams(service)) === 0, "the paused reader is cut");
    paused.socket.resume();
    await paused.closed;
    const got = [...paused.text.matchAll(/^id: (\d+)\nevent: .*\ndata: .*\n\n/gm)].map(([, id]) => Number(id));
    assert.deepEqual(got, upTo(got.length));
    assert.ok(got.length < 50_000);
    const rest = await service.get(`/api/stream?run_id=${run_id}`, { "last-event-id": String(got.at(-1)) });
    assert.deepEqual([...got, ...ids(await readEvents(rest))], upTo(50_002));
  });

  it("a reader that stops reading at the end of a run is cut", async () => {
    const service = await startService({ agent: flood, config: { limits: { ...limits, slow_reader_bytes: 1e9 } } });
    const { stream_url } = await service.start("x");
    const paused = new RawClient(service.port).send(requestText(`GET ${stream_url}`, []));
    await until(() => paused.text.includes("event: replay_meta"));
    paused.socket.pause();
    assert.equal(await openStreams(service), 1);
    await until(async () => (await openStreams(service)) === 0, "the paused reader is cut");
    paused.destroy();
  });

  it("a fast reader is never cut, even of a silent run", async () => {
    const service = await startService({ config: { limits } });
    const { run_id, stream_url } = await service.start("hold");
    const client = new RawClient(service.port).send(requestText(`GET ${stream_url}`, [AUTH]));
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await service.post(`/api/runs/${run_id}/cancel`, "");
    await until(() => client.text.includes("event: aborted"));
    client.destroy();
  });
});

describe("many readers at once", () => {
  const filler = "x".repeat(1500);
  const flood: Agent = async (_run, { emit }) => {
    for (let i = 0; i < 9_988; i++) {
      emit("delta", { delta: filler });
      if (i % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    return { response: "ok" };
  };
  const limits = { streams_per_run: 1000, streams_bytes: 4_000_000 };

  /** A finished run of 9,990 events, 15 MB. */
  async function flooded(more: object = {}) {
    const service = await startService({ agent: flood, config: { limits: { ...limits, ...more } } });
    const run = await service.start("x");
    await until(async () => /"done":true/.test(await (await service.get(run.status_url)).text()));
    return { ...service, ...run };
  }

  const paused = (service: RunningService, streamUrl: string, count: number) =>
    Array.from({ length: count }, () => {
      const client = new RawClient(service.port);
      client.socket.pause();
      return client.send(requestText(`GET ${streamUrl}`, []));
    });

  /** The longest time in which the event loop did nothing else. */
  async function longestTurn(work: () => Promise<unknown>): Promise<number> {
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    await work();
    delay.disable();
    return delay.max / 1e6;
  }

  it("take turns, and each gets the whole run @alone", async () => {
    const service = await flooded();
    const texts = Array.from({ length: 5 }, () => "");
    const longest = await longestTurn(async () => {
      const responses = await Promise.all(texts.map(() => fetch(service.url + service.stream_url)));
      await Promise.all(responses.map(async (response, i) => (texts[i] = await response.text())));
    });
    for (const text of texts) {
      assert.deepEqual(
        [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id)),
        upTo(9_990),
      );
    }
    assert.ok(longest < 250, `${longest} ms in one turn`);
  });

  it("that never read share the waiting bytes and delay nobody @alone @long", async () => {
    const service = await flooded();
    const before = process.memoryUsage().arrayBuffers;
    let clients: RawClient[] = [];
    const longest = await longestTurn(async () => {
      clients = paused(service, service.stream_url, 300);
      await until(async () => (await openStreams(service)) === 300, "300 streams");
      const reader = await readEvents(await fetch(service.url + service.stream_url));
      assert.deepEqual(ids(reader), upTo(9_990));
    });
    const held = process.memoryUsage().arrayBuffers - before;
    for (const client of clients) client.destroy();
    assert.ok(held < 100_000_000, `${held} bytes`);
    assert.ok(longest < 250, `${longest} ms in one turn`);
  });

  it("beyond the memory limit the slowest is cut and resumes by id", async () => {
    const service = await flooded({ streams_bytes: 100_000, slow_reader_bytes: 50_000 });
    const late = `${service.stream_url}&last_event_id=4000`;
    const connected = once(service.listening.server, "connection");
    const [first] = paused(service, service.stream_url, 1);
    const [socket] = (await connected) as [Socket];
    await until(() => socket.writableLength > 0, "bytes that wait");
    const others = [...paused(service, late, 1), ...paused(service, `${service.stream_url}&last_event_id=8000`, 1)];
    await until(() => socket.destroyed, "the cut");
    first!.socket.resume();
    await first!.closed;
    const got = [...first!.text.matchAll(/^id: (\d+)\nevent: .*\ndata: .*\n\n/gm)].map(([, id]) => Number(id));
    assert.ok(got.length < 9_990, `${got.length}`);
    for (const other of others) other.destroy();
    const rest = await service.get(`/api/stream?run_id=${service.run_id}`, { "last-event-id": String(got.at(-1)) });
    assert.deepEqual([...got, ...ids(await readEvents(rest))], upTo(9_990));
  });
});
