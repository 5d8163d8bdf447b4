import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Agent } from "#src/service/agent/agent.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import { serviceStarter, until } from "../../../../../helpers/hooks/hook-service.js";
import { rawRequest, requestText } from "../../../../../helpers/http/raw-http.js";

const startService = serviceStarter();

const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const json = async (response: Response) => (await response.json()) as Record<string, unknown>;
const codeOf = async (response: Response) => [response.status, (await json(response)).code];

describe("run status", () => {
  it("is equal under both paths and has the outcome", async () => {
    const { start, get } = await startService();
    const { run_id, status_url } = await start("hello");
    await until(async () => (await json(await get(status_url))).done === true);
    const byPath = await json(await get(status_url));
    assert.deepEqual(await json(await get(`/api/run_status?run_id=${run_id}`)), byPath);
    const { created_at, started_at, finished_at, ...rest } = byPath;
    for (const time of [created_at, started_at, finished_at]) assert.match(String(time), /^\d{4}-.*Z$/);
    assert.deepEqual(rest, {
      ok: true,
      run_id,
      status: "succeeded",
      done: true,
      session_key: "hook:ingress",
      chat_id: 1,
      origin: "agent",
      name: null,
      priority: 0,
      tags: [],
      attempt: 1,
      due_at: null,
      deadline_at: null,
      timeout_seconds: 600,
      oldest_event_id: 1,
      last_event_id: rest.last_event_id,
      error: null,
      error_code: null,
      queue_position: null,
      progress: null,
      files: [],
      file_count: 0,
      response: "hello",
    });
  });

  it("has the queue position, the progress and the files", async () => {
    const release: (() => void)[] = [];
    const agent: Agent = async ({ message }, { emit, addFile }) => {
      emit("progress", { value: 5, max: 20, node: "3" });
      for (const name of ["b.png", "a ü.txt"]) addFile({ path: `/nowhere/${name}` });
      await new Promise<void>((resolve) => release.push(resolve));
      return { response: message };
    };
    const { start, get } = await startService({ agent });
    const [first, second, third] = [await start("1"), await start("2"), await start("3")];
    const status = async ({ status_url }: { status_url: string }) => json(await get(status_url));
    await until(async () => (await status(first)).file_count === 2);
    const { queue_position, progress, files } = await status(first);
    assert.deepEqual([queue_position, progress], [null, { value: 5, max: 20, node: "3" }]);
    assert.deepEqual(files, [
      { name: "b.png", url: `${first.status_url}/files/b.png`, content_type: null },
      { name: "a ü.txt", url: `${first.status_url}/files/a%20%C3%BC.txt`, content_type: null },
    ]);
    assert.deepEqual([(await status(second)).queue_position, (await status(third)).queue_position], [1, 2]);
    assert.deepEqual((await status(third)).progress, null);
    release[0]!();
    await until(() => release.length === 2);
    assert.deepEqual([(await status(second)).queue_position, (await status(third)).queue_position], [null, 1]);
    release[1]!();
    await until(() => release.length === 3);
    release[2]!();
  });

  it("has the reason of a failure", async () => {
    const agent: Agent = () => Promise.reject(new Error("the paint ran out"));
    const { start, get } = await startService({ agent });
    const { status_url } = await start("x");
    await until(async () => (await json(await get(status_url))).done === true);
    const { status, error, response } = await json(await get(status_url));
    assert.deepEqual([status, response], ["failed", null]);
    assert.match(String(error), /the paint ran out/);
  });

  for (const [what, path, status, code] of [
    ["an unknown run", `/api/runs/${UNKNOWN}`, 404, "run_not_found"],
    ["an unknown run in the query", `/api/run_status?run_id=${UNKNOWN}`, 404, "run_not_found"],
    ["no run", "/api/run_status", 400, "invalid_request"],
    ["a blank run", "/api/run_status?run_id=", 400, "invalid_request"],
    ["two runs", `/api/run_status?run_id=${UNKNOWN}&run_id=${UNKNOWN}`, 400, "invalid_request"],
    ["__proto__", "/api/runs/__proto__", 404, "run_not_found"],
    ["a path for an id", "/api/runs/..%2f..%2fetc", 404, "run_not_found"],
    ["NUL", "/api/runs/%00", 404, "run_not_found"],
    ["10 KB", `/api/runs/${"a".repeat(10_000)}`, 404, "run_not_found"],
  ] as const) {
    it(`${what}: ${status}`, async () => {
      const { get } = await startService();
      assert.deepEqual(await codeOf(await get(path)), [status, code]);
    });
  }
});

describe("run list", () => {
  it("is newest first, in pages without gap or repeat", async () => {
    const { start, get } = await startService({ config: { limits: { session_starts_per_10s: 1000 } } });
    const started: string[] = [];
    for (let i = 0; i < 25; i++) started.unshift((await start(`m${i}`)).run_id);
    const seen: unknown[] = [];
    let cursor = "";
    do {
      const page = await json(await get(`/api/runs?limit=10&cursor=${encodeURIComponent(cursor)}`));
      assert.equal(page.ok, true);
      seen.push(...(page.runs as { run_id: string }[]).map(({ run_id }) => run_id));
      cursor = (page.next_cursor as string | null) ?? "";
    } while (cursor !== "");
    assert.deepEqual(seen, started);
  });

  it("contains no messages", async () => {
    const { start, get } = await startService();
    await start("very private");
    assert.doesNotMatch(await (await get("/api/runs")).text(), /very private/);
  });

  it("filters by state and session, in pages", async () => {
    const config = { hooks_allow_request_session_key: true, hooks_allowed_session_key_prefixes: ["s"] };
    const { start, get } = await startService({ config });
    const started: Record<string, string[]> = { "s 1&": [], s2: [] };
    for (let i = 0; i < 6; i++) {
      const sessionKey = i % 2 === 0 ? "s 1&" : "s2";
      started[sessionKey]!.unshift((await start("hold", { sessionKey })).run_id);
    }
    const list = async (query: string) => {
      const page = await json(await get(`/api/runs?${query}`));
      return { ids: (page.runs as { run_id: string }[]).map(({ run_id }) => run_id), next: page.next_cursor };
    };
    await until(async () => (await list("state=running")).ids.length === 2);
    const key = encodeURIComponent("s 1&");
    assert.deepEqual((await list(`session_key=${key}`)).ids, started["s 1&"]);
    assert.deepEqual((await list(`session_key=${key}&state=queued`)).ids, started["s 1&"]!.slice(0, 2));
    assert.deepEqual((await list("session_key=s2&state=running")).ids, started.s2!.slice(2));
    assert.deepEqual((await list("session_key=none")).ids, []);
    assert.deepEqual((await list("state=failed")).ids, []);
    const first = await list("state=queued&session_key=s2&limit=1");
    const second = await list(`state=queued&session_key=s2&limit=1&cursor=${first.next}`);
    assert.deepEqual([...first.ids, ...second.ids, second.next], [...started.s2!.slice(0, 2), null]);
  });

  it("filters by tag", async () => {
    const { start, get } = await startService();
    const { run_id } = await start("one", { tags: ["a", "x y&z", "a"] });
    await start("two", { tags: ["a"] });
    const list = async (tag: string) => {
      const body = await json(await get(`/api/runs?${new URLSearchParams({ tag })}`));
      return body.runs as { run_id: string; tags: string[] }[];
    };
    assert.deepEqual(
      (await list("x y&z")).map((run) => [run.run_id, run.tags]),
      [[run_id, ["a", "x y&z"]]],
    );
    assert.equal((await list("a")).length, 2);
    assert.deepEqual(await list("b"), []);
  });

  it("suggests the state for a typo", async () => {
    const { get } = await startService();
    const { error } = await json(await get("/api/runs?state=runing"));
    assert.match(String(error), /^state: expected one of queued, running, .*\. Did you mean running\?$/);
  });

  it("refuses a filter that does not exist, of runs and of deliveries", async () => {
    const { get } = await startService();
    const errorOf = async (path: string) => (await json(await get(path))).error;
    assert.equal(
      await errorOf("/api/runs?limit=1&sesion_key=a"),
      'unknown parameter "sesion_key": expected cursor, limit, state, session_key, tag. Did you mean session_key?',
    );
    assert.equal(
      await errorOf("/api/webhooks/deliveries?status=dead"),
      'unknown parameter "status": expected cursor, limit, webhook, state, run_id. Did you mean state?',
    );
  });

  for (const query of [
    "state=done",
    "state=RUNNING",
    "state=queued&state=running",
    `session_key=${"x".repeat(257)}`,
    "session_key=a%0ab",
    "session_key=a&session_key=b",
    "limit=0",
    "limit=-1",
    "limit=x",
    "limit=1.5",
    "limit=1&limit=2",
    "cursor=x",
    "cursor=a&cursor=b",
  ]) {
    it(`${query}: 400`, async () => {
      const { get } = await startService();
      assert.deepEqual(await codeOf(await get(`/api/runs?${query}`)), [400, "invalid_request"]);
    });
  }

  it("returns at most 200 runs a page", async () => {
    const { get } = await startService();
    assert.equal((await get("/api/runs?limit=999999999")).status, 200);
  });
});

describe("cancel", () => {
  it("ends queued and running runs, leaves ended ones, can be repeated", async () => {
    const { start, post, get } = await startService();
    const running = await start("hold");
    const queued = await start("hold");
    for (const { run_id, status_url } of [queued, running]) {
      for (let i = 0; i < 2; i++) {
        const response = await post(`/api/runs/${run_id}/cancel`, "");
        const { ok, status, done } = await json(response);
        assert.deepEqual([response.status, ok, status, done], [200, true, "cancelled", true]);
      }
      assert.equal((await json(await get(status_url))).status, "cancelled");
    }
    const finished = await start("x");
    await until(async () => (await json(await get(finished.status_url))).done === true);
    assert.equal((await json(await post(`/api/runs/${finished.run_id}/cancel`, "{}"))).status, "succeeded");
  });

  it("unknown run: 404; no token: 401", async () => {
    const { post, url } = await startService();
    assert.deepEqual(await codeOf(await post(`/api/runs/${UNKNOWN}/cancel`, "")), [404, "run_not_found"]);
    const response = await fetch(`${url}/api/runs/${UNKNOWN}/cancel`, { method: "POST" });
    assert.deepEqual(await codeOf(response), [401, "unauthorized"]);
  });

  it("does not accept the run's signature", async () => {
    const { start, url } = await startService();
    const { run_id, stream_url } = await start("hold");
    const query = stream_url.slice(stream_url.indexOf("?"));
    assert.equal((await fetch(`${url}/api/runs/${run_id}/cancel${query}`, { method: "POST" })).status, 401);
    assert.equal((await fetch(`${url}/api/runs/${run_id}${query}`)).status, 401);
  });
});

describe("files of a run", () => {
  const folder = temporaryFolder();

  async function withFile(contentType?: string) {
    const path = join(folder(), "picture one.png");
    writeFileSync(path, "<script>png</script>");
    const urls: string[] = [];
    const agent: Agent = async (_run, { addFile }) => {
      urls.push(addFile({ path, name: "picture one.png", contentType }).url);
      return { response: "ok" };
    };
    const service = await startService({ agent });
    const { run_id, stream_url, status_url } = await service.start("x");
    await until(async () => (await json(await service.get(status_url))).done === true);
    return { ...service, path, run_id, fileUrl: urls[0]!, query: stream_url.slice(stream_url.indexOf("?")) };
  }

  it("need the token or a signature, and run nothing in a browser", async () => {
    const { get, url, fileUrl, query } = await withFile("text/html");
    for (const response of [await get(fileUrl), await fetch(url + fileUrl + query)]) {
      assert.equal(response.status, 200);
      assert.equal(await response.text(), "<script>png</script>");
      assert.match(response.headers.get("content-type")!, /^text\/html/);
      assert.match(response.headers.get("content-security-policy")!, /sandbox/);
      assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    }
    assert.equal((await fetch(url + fileUrl)).status, 401);
  });

  it("HEAD returns the length without the file", async () => {
    const { url, fileUrl, query } = await withFile();
    const response = await fetch(url + fileUrl + query, { method: "HEAD" });
    assert.deepEqual([response.status, response.headers.get("content-length"), await response.text()], [200, "20", ""]);
  });

  it("include only reported ones", async () => {
    const { get, run_id, path } = await withFile();
    for (const name of [
      "other.png",
      "..%2fpicture%20one.png",
      "%2e%2e",
      encodeURIComponent(path),
      "%00",
      "__proto__",
    ]) {
      assert.equal((await get(`/api/runs/${run_id}/files/${name}`)).status, 404, name);
    }
    assert.equal((await get(`/api/runs/${UNKNOWN}/files/picture%20one.png`)).status, 404);
  });

  it("cannot be read with another run's signature", async () => {
    const { url, run_id, start, fileUrl } = await withFile();
    const other = await start("y");
    assert.notEqual(other.run_id, run_id);
    const query = other.stream_url.slice(other.stream_url.indexOf("?"));
    assert.equal((await fetch(url + fileUrl + query)).status, 401);
  });

  it("are sent again only if they have changed", async () => {
    const { get, fileUrl, path, query, port } = await withFile();
    const etag = (await get(fileUrl)).headers.get("etag")!;
    // fetch would forbid an answer from any cache
    const ask = () => rawRequest(port, requestText(`GET ${fileUrl}${query}`, [`If-None-Match: ${etag}`]));
    assert.deepEqual([(await ask()).status, (await ask()).body], [304, ""]);
    writeFileSync(path, "another picture");
    assert.deepEqual([(await ask()).status, (await ask()).body], [200, "another picture"]);
    writeFileSync(path, "");
    assert.equal(await (await get(fileUrl)).text(), "");
  });

  it("links at their path, or at a folder's, are not followed", async () => {
    const { get, fileUrl, path } = await withFile();
    const secret = join(folder(), "secret");
    writeFileSync(secret, "a secret");
    const refused = async () => assert.deepEqual(await codeOf(await get(fileUrl)), [404, "not_found"]);
    rmSync(path);
    symlinkSync(secret, path);
    await refused();
    rmSync(path);
    mkdirSync(path);
    await refused();
    rmSync(path, { recursive: true });
    spawnSync("mkfifo", [path]);
    await refused();
    rmSync(path);
    const away = `${folder()}-away`;
    renameSync(folder(), away);
    mkdirSync(join(away, "other"));
    writeFileSync(join(away, "other", "picture one.png"), "a secret");
    symlinkSync(join(away, "other"), folder());
    await refused();
    rmSync(folder());
    renameSync(away, folder());
  });

  it("in a linked output folder can be read", async () => {
    const linked = join(folder(), "linked");
    mkdirSync(join(folder(), "real"));
    symlinkSync(join(folder(), "real"), linked);
    writeFileSync(join(linked, "a.png"), "picture");
    const agent: Agent = async (_run, { addFile }) => ({ response: addFile({ path: join(linked, "a.png") }).url });
    const { start, get } = await startService({ agent });
    const { status_url } = await start("x");
    await until(async () => (await json(await get(status_url))).done === true);
    const { response } = await json(await get(status_url));
    assert.equal(await (await get(String(response))).text(), "picture");
  });

  it("that have been deleted: a JSON 404", async () => {
    const { get, fileUrl, path } = await withFile();
    rmSync(path);
    assert.deepEqual(await codeOf(await get(fileUrl)), [404, "not_found"]);
  });
});

describe("queue routes", () => {
  const startService = serviceStarter();

  const json = async (response: Response) => [response.status, await response.json()];

  it("pause and resume, with the numbers of runs; each twice changes nothing", async () => {
    const { get, post, start } = await startService();
    const idle = { ok: true, paused: false, queued: 0, running: 0 };
    assert.deepEqual(await json(await get("/api/queue")), [200, idle]);
    for (let i = 0; i < 2; i++) {
      assert.deepEqual(await json(await post("/api/queue/pause", {})), [200, { ...idle, paused: true }]);
    }
    const { status_url } = await start("hello");
    assert.deepEqual(await json(await get("/api/queue")), [200, { ...idle, paused: true, queued: 1 }]);
    await post("/api/queue/resume", {});
    await until(async () => ((await (await get(status_url)).json()) as { status: string }).status === "succeeded");
    assert.deepEqual(await json(await post("/api/queue/resume", {})), [200, idle]);
  });

  it("need the token and POST", async () => {
    const { url, get } = await startService();
    assert.equal((await fetch(`${url}/api/queue`)).status, 401);
    assert.equal((await fetch(`${url}/api/queue/pause`, { method: "POST" })).status, 401);
    assert.equal((await get("/api/queue/pause")).status, 405);
  });
});
