import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { LatentkitError } from "latentkit";
import type { Agent } from "#src/service/agent/agent.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import { FakeClock, turns } from "../../../../../helpers/hooks/fake-clock.js";
import { bearer, serviceStarter, until } from "../../../../../helpers/hooks/hook-service.js";
import { SIGN } from "../../../../../helpers/hooks/sign.js";

const startService = serviceStarter();
const newFolder = temporaryFolder();

const json = async (response: Response) => (await response.json()) as Record<string, unknown>;
const WAIT = { prefer: "wait=60" };

/** An agent that the test lets end; "files NAME …" reports files of these names with their names as content. */
function gatedAgent() {
  const folder = newFolder();
  const waiting: ((result: unknown) => void)[] = [];
  const agent: Agent = async ({ message }, { signal, addFile }) => {
    const [what, ...names] = message.split(" ");
    if (what === "files") {
      for (const name of names) {
        const path = join(folder, name);
        writeFileSync(path, name);
        addFile({ path });
      }
      return { response: names.join() };
    }
    if (what === "fail") throw new LatentkitError("node.failed", "The paint ran out.");
    if (what === "hold") {
      await new Promise((resolve, reject) => {
        waiting.push(resolve);
        signal.addEventListener("abort", reject, { once: true });
      });
    }
    return { response: message };
  };
  return { agent, waiting };
}

describe("Prefer: wait", () => {
  it("waits through a retry, whose failed attempt leaves its events and no files", async () => {
    const folder = newFolder();
    const agent: Agent = async ({ attempt = 1 }, { addFile }) => {
      for (const name of attempt === 1 ? ["half.png", "lake.png"] : ["lake.png"]) {
        const path = join(folder, `${attempt}-${name}`);
        writeFileSync(path, `${name} of attempt ${attempt}`);
        addFile({ path, name });
      }
      if (attempt === 1) throw new LatentkitError("remote.failed", "The service is down.");
      return { response: "" };
    };
    const retries = { first_delay_seconds: 0.05, codes: ["remote.failed"] };
    const { post, get } = await startService({ agent, config: { retries } });
    const run = await json(await post("/hooks/agent", { message: "x" }, WAIT));
    assert.deepEqual([run.status, run.attempt, run.file_count], ["succeeded", 2, 1]);
    const file = (name: string) => get(`/api/runs/${run.run_id}/files/${name}`);
    assert.equal((await file("half.png")).status, 404);
    assert.equal(await (await file("lake.png")).text(), "lake.png of attempt 2");
    const events = await (await get(`/api/stream?run_id=${run.run_id}`)).text();
    assert.deepEqual(
      events.match(/^event: .*$/gm),
      ["replay_meta", "status", "retry", "status", "done"].map((event) => `event: ${event}`),
    );
    assert.match(events, /"attempt":2,"delay_seconds":0.0\d+,"error":"The service is down.","code":"remote.failed"/);
  });

  it("responds with an error where the run misses its deadline, whether it waits or runs", async () => {
    const { agent } = gatedAgent();
    const { post, hooks } = await startService({ agent });
    const [running, waiting] = await Promise.all([
      post("/hooks/agent", { message: "hold", deadlineSeconds: 2 }, WAIT),
      post("/hooks/agent", { message: "x", deadlineSeconds: 1 }, WAIT),
    ]);
    assert.deepEqual([running.status, (await json(running)).code], [504, "run_timed_out"]);
    assert.deepEqual([waiting.status, (await json(waiting)).code], [503, "run_expired"]);
    const { runs } = await hooks.runs.list({ limit: 9 });
    assert.deepEqual(
      runs.map(({ error }) => error?.code),
      ["deadline_exceeded", "deadline_exceeded"],
    );
  });

  it("responds with the run's result when it has ended", async () => {
    const { agent, waiting } = gatedAgent();
    const { post, hooks } = await startService({ agent });
    const posted = post("/hooks/agent", { message: "hold on" }, WAIT);
    await until(() => waiting.length === 1);
    // no response yet
    assert.equal(await Promise.race([posted, turns(20)]), undefined);
    waiting[0]!(undefined);
    const response = await posted;
    const body = await json(response);
    const [run] = (await hooks.runs.list({ limit: 1 })).runs;
    assert.deepEqual([response.status, response.headers.get("preference-applied")], [200, "wait=60"]);
    assert.deepEqual([body.run_id, body.status, body.response, body.done], [run!.id, "succeeded", "hold on", true]);
    assert.equal(response.headers.get("location"), `/api/runs/${run!.id}`);
    assert.equal(response.headers.get("vary"), "Accept, Prefer");
  });

  it("responds with 202 and the usual payload when the time is over; the run goes on", async () => {
    const clock = new FakeClock();
    const { agent, waiting } = gatedAgent();
    const { post, hooks } = await startService({ agent, clock, config: { limits: { wait_seconds: 20 } } });
    const posted = post("/hooks/agent", { message: "hold" }, WAIT);
    await until(() => waiting.length === 1);
    await clock.advance(19_999);
    assert.equal(await Promise.race([posted, turns(20)]), undefined);
    await clock.advance(1);
    const response = await posted;
    const { status, run_id, stream_url } = await json(response);
    assert.deepEqual([response.status, status, typeof stream_url], [202, "queued", "string"]);
    assert.equal(response.headers.get("preference-applied"), null);
    waiting[0]!(undefined);
    await until(async () => (await hooks.runs.get(String(run_id))).state === "succeeded");
  });

  it("does not wait without the preference, with wait=0, and where the limit is 0", async () => {
    const { agent } = gatedAgent();
    const one = await startService({ agent });
    for (const headers of [undefined, { prefer: "wait=0" }, { prefer: "wait=x" }, { prefer: "respond-async" }]) {
      assert.equal((await one.post("/hooks/agent", { message: "hold" }, headers)).status, 200);
    }
    const none = await startService({ agent, config: { limits: { wait_seconds: 0 } } });
    const response = await none.post("/hooks/agent", { message: "hold" }, WAIT);
    assert.deepEqual([response.status, (await json(response)).status], [200, "queued"]);
  });

  it("waits for wakes and signed senders too", async () => {
    const { agent } = gatedAgent();
    const secrets = "0123456789abcdef";
    const sender = { signature: "github", secrets, message: "{{/text}}" } as const;
    const { post, url } = await startService({ agent, config: { incoming: { it: sender } } });
    const woken = await json(await post("/hooks/wake", { text: "up" }, WAIT));
    assert.deepEqual([woken.status, woken.response], ["succeeded", "up"]);
    const body = '{"text":"signed"}';
    const headers = { ...WAIT, "content-type": "application/json", ...SIGN.github({ secret: secrets, body, time: 0 }) };
    const sent = await json(await fetch(`${url}/hooks/in/it`, { method: "POST", headers, body }));
    assert.deepEqual([sent.status, sent.response], ["succeeded", "signed"]);
  });

  it("a repeated request waits for the same run, and gets its result after its end", async () => {
    const { agent, waiting } = gatedAgent();
    const { post, hooks } = await startService({ agent });
    const request = () => post("/hooks/agent", { message: "hold" }, { ...WAIT, "idempotency-key": "k" });
    const both = [request(), request()];
    await until(() => waiting.length === 1);
    await turns(20);
    waiting[0]!(undefined);
    const bodies = await Promise.all([...both, request()].map(async (sent) => json(await sent)));
    assert.equal(new Set(bodies.map(({ run_id }) => run_id)).size, 1);
    assert.ok(bodies.every(({ status }) => status === "succeeded"));
    assert.equal((await hooks.runs.list({ limit: 10 })).runs.length, 1);
  });

  it("a client that leaves loses nothing: the run ends, and its key finds it", async () => {
    const { agent, waiting } = gatedAgent();
    const { post, url, hooks } = await startService({ agent });
    const leaving = new AbortController();
    const headers = { ...bearer, ...WAIT, "content-type": "application/json", "idempotency-key": "k" };
    const body = '{"message":"hold"}';
    const posted = fetch(`${url}/hooks/agent`, { method: "POST", headers, body, signal: leaving.signal });
    posted.catch(() => undefined);
    await until(() => waiting.length === 1);
    const { run_id } = await json(await post("/hooks/agent", { message: "hold" }, { "idempotency-key": "k" }));
    await until(() => hooks.runs.stats().followed === 1);
    leaving.abort();
    await until(() => hooks.runs.stats().followed === 0);
    waiting[0]!(undefined);
    await until(async () => (await hooks.runs.get(String(run_id))).state === "succeeded");
  });

  it("as many requests wait as streams may be open; the others get 202 at once, and free slots come back", async () => {
    const { agent, waiting } = gatedAgent();
    const limits = { streams: 2, running: 4, running_per_session: 4 };
    const { post, get } = await startService({ agent, config: { limits } });
    const two = [1, 2].map(() => post("/hooks/agent", { message: "hold" }, WAIT));
    await until(() => waiting.length === 2);
    await turns(20);
    const third = await post("/hooks/agent", { message: "hold" }, WAIT);
    assert.equal(third.status, 202);
    const { stream_url } = await json(third);
    assert.equal((await get(String(stream_url))).status, 429);
    for (const end of waiting) end(undefined);
    assert.deepEqual(
      (await Promise.all(two)).map(({ status }) => status),
      [200, 200],
    );
    assert.equal((await get(String(stream_url))).status, 200);
    await until(() => waiting.length === 3);
    waiting[2]!(undefined);
  });

  it("a service that stops responds with 202 to those that wait", async () => {
    const { agent, waiting } = gatedAgent();
    const { post, hooks } = await startService({ agent, config: { limits: { running: 1, drain_seconds: 0 } } });
    const running = post("/hooks/agent", { message: "hold" }, WAIT);
    await until(() => waiting.length === 1);
    const queued = post("/hooks/agent", { message: "next" }, WAIT);
    await until(() => hooks.runs.stats().followed === 2);
    void hooks.close(0);
    const [first, second] = await Promise.all([running, queued]);
    assert.deepEqual([second.status, (await json(second)).status], [202, "queued"]);
    assert.deepEqual([first.status, (await json(first)).code], [503, "run_interrupted"]);
  });

  it("a run without success becomes an error with the run's sentence and address", async () => {
    const clock = new FakeClock();
    const { agent, waiting } = gatedAgent();
    const { post, hooks } = await startService({ agent, clock });
    const failed = await post("/hooks/agent", { message: "fail" }, WAIT);
    const { error, code, ok, request_id } = await json(failed);
    assert.deepEqual([failed.status, ok, error, code], [500, false, "The paint ran out.", "run_failed"]);
    assert.equal(typeof request_id, "string");
    const [run] = (await hooks.runs.list({ limit: 1 })).runs;
    assert.equal(failed.headers.get("location"), `/api/runs/${run!.id}`);
    assert.equal(failed.headers.get("vary"), "Accept, Prefer");

    const cancelled = post("/hooks/agent", { message: "hold" }, WAIT);
    await until(() => waiting.length === 1);
    const [second] = (await hooks.runs.list({ limit: 1 })).runs;
    await post(`/api/runs/${second!.id}/cancel`, {});
    assert.deepEqual([(await cancelled).status, (await json(await cancelled)).code], [409, "run_cancelled"]);

    const late = post("/hooks/agent", { message: "hold", timeoutSeconds: 5 }, WAIT);
    await until(() => waiting.length === 2);
    await clock.advance(6000);
    assert.deepEqual([(await late).status, (await json(await late)).code], [504, "run_timed_out"]);

    const problem = await post("/hooks/agent", { message: "fail" }, { ...WAIT, accept: "application/problem+json" });
    assert.deepEqual([problem.status, (await json(problem)).detail], [500, "The paint ran out."]);
  });
});

describe("Accept: image/* with Prefer: wait", () => {
  for (const [what, accept, files, expected] of [
    ["image/png", "image/png", "notes.txt b.png a.png", "b.png"],
    ["any picture", "image/*", "notes.txt a.webp b.png", "a.webp"],
    ["one of two kinds", "image/png, image/jpeg;q=0.5", "a.webp b.JPG", "b.JPG"],
    ["a picture as likely as JSON", "application/json, image/png", "a.png", "a.png"],
    ["a picture before anything else", "image/png, */*;q=0.1", "a.png", "a.png"],
  ] as const) {
    it(`${what}: the first such file`, async () => {
      const { agent } = gatedAgent();
      const { post, get, url } = await startService({ agent });
      const response = await post("/hooks/agent", { message: `files ${files}` }, { ...WAIT, accept });
      const { headers } = response;
      assert.deepEqual([response.status, await response.text()], [200, expected]);
      assert.match(String(headers.get("content-type")), /^image\/(png|webp|jpeg)$/);
      assert.equal(headers.get("content-disposition"), `inline; filename*=UTF-8''${expected}`);
      assert.deepEqual([headers.get("vary"), headers.get("preference-applied")], ["Accept, Prefer", "wait=60"]);
      const run = await json(await get(String(headers.get("location"))));
      assert.equal(run.status, "succeeded");
      const file = await get(String(headers.get("content-location")));
      assert.ok(file.url.startsWith(url));
      assert.equal(await file.text(), expected);
    });
  }

  for (const [what, accept, files] of [
    ["no picture", "image/png", "notes.txt"],
    ["no file", "image/png", ""],
    ["another kind of picture", "image/png", "a.webp"],
    ["a picture that is refused", "image/*, image/png;q=0", "a.png"],
    ["anything accepted", "*/*", "a.png"],
    ["JSON preferred", "application/json, image/png;q=0.9", "a.png"],
    ["no Accept", "", "a.png"],
  ] as const) {
    it(`${what}: JSON`, async () => {
      const { agent } = gatedAgent();
      const { post } = await startService({ agent });
      const response = await post("/hooks/agent", { message: `files ${files}`.trim() }, { ...WAIT, accept });
      const { status, files: listed } = await json(response);
      assert.deepEqual([response.status, status], [200, "succeeded"]);
      assert.equal((listed as unknown[]).length, files === "" ? 0 : 1);
    });
  }

  it("names a file of any letters, and without waiting sends none", async () => {
    const { agent } = gatedAgent();
    const { post } = await startService({ agent });
    const response = await post("/hooks/agent", { message: "files ü'(1).png" }, { ...WAIT, accept: "image/*" });
    assert.equal(response.headers.get("content-disposition"), "inline; filename*=UTF-8''%C3%BC%27%281%29.png");
    const started = await post("/hooks/agent", { message: "files a.png" }, { accept: "image/png" });
    assert.match(String(started.headers.get("content-type")), /json/);
  });
});
