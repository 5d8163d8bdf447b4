import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createS3Files } from "latentkit/hooks";
import { startService } from "latentkit/service";
import type { Agent } from "#src/service/agent/agent.js";
import { createPostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { startWorker } from "#src/service/worker/worker.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { serviceStarter, TOKEN, until } from "../../../../helpers/hooks/hook-service.js";
import { refuse, S3_KEYS, s3Server } from "../../../../helpers/hooks/s3-server.js";
import { rawRequest, requestText } from "../../../../helpers/http/raw-http.js";
import { newSchema, postgres } from "../../../../helpers/postgres/cluster.js";

describe("runs with files in a bucket", () => {
  const s3 = s3Server();
  const folder = temporaryFolder();
  const start = serviceStarter();

  /** Writes and reports the files that the message names, then returns or waits. */
  const agent: Agent = async ({ id, message }, { addFile, emit, signal }) => {
    mkdirSync(join(folder(), "runs", id), { recursive: true });
    for (const name of message.split(" ").filter((word) => word !== "hold")) {
      const path = join(folder(), "runs", id, name);
      writeFileSync(path, `content of ${name}`);
      emit("image", { url: addFile({ path }).url });
    }
    if (message.includes("hold")) {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    }
    return { response: "done" };
  };
  const service = async (config = {}) => {
    const scratch = join(folder(), "runs");
    const files = createS3Files({ url: s3().url, credentials: S3_KEYS, pauseMs: 1, scratch });
    return start({ agent, files, config });
  };
  const ended = async ({ get }: Awaited<ReturnType<typeof service>>, url: string) => {
    type Status = {
      status: string;
      done: boolean;
      error: string | null;
      error_code: string | null;
      files: { url: string }[];
    };
    let status: Status | undefined;
    await until(async () => {
      status = (await (await get(url)).json()) as Status;
      return status.done;
    });
    return status!;
  };

  it("are served by the service, from the bucket alone", async () => {
    const running = await service();
    const { status_url, stream_url, run_id } = await running.start("fox.png cat.txt");
    const { status, files } = await ended(running, status_url);
    assert.equal(status, "succeeded");
    assert.equal(s3().objects.size, 2);
    await until(() => !existsSync(join(folder(), "runs", run_id)));
    const signed = running.url + files[0]!.url + stream_url.slice(stream_url.indexOf("?"));
    const response = await fetch(signed);
    assert.equal(await response.text(), "content of fox.png");
    assert.equal(response.headers.get("content-type"), "image/png");
    assert.equal(response.headers.get("content-security-policy"), "default-src 'none'; sandbox");
    const etag = response.headers.get("etag")!;
    // fetch would add Cache-Control: no-cache
    const lines = [`If-None-Match: ${etag}`, `Authorization: Bearer ${TOKEN}`];
    assert.equal((await rawRequest(running.port, requestText(`GET ${files[0]!.url}`, lines))).status, 304);
    const head = await fetch(signed, { method: "HEAD" });
    assert.equal(head.headers.get("content-length"), "18");
    assert.equal((await fetch(running.url + files[0]!.url)).status, 401);
    const metrics = await (await running.get("/metrics")).text();
    assert.match(metrics, /latentkit_file_store_seconds_count 2/);
    assert.match(metrics, /latentkit_files_failed_total 0/);
  });

  it("readers learn of a file once it can be read", async () => {
    const running = await service();
    let isHeld = true;
    const waiting: (() => void)[] = [];
    s3().intercept = (req, res) => {
      if (!isHeld || req.method !== "PUT") return false;
      waiting.push(() => {
        isHeld = false;
        refuse(res, 503, "SlowDown");
      });
      return true;
    };
    const { status_url } = await running.start("fox.png hold");
    const status = async () =>
      (await (await running.get(status_url)).json()) as { last_event_id: number; files: unknown[] };
    await until(() => waiting.length === 1);
    // the status event alone
    assert.deepEqual([(await status()).last_event_id, (await status()).files], [1, []]);
    waiting[0]!();
    await until(async () => (await status()).files.length === 1);
    assert.equal((await status()).last_event_id, 2);
    await running.post(`${status_url}/cancel`, {});
  });

  it("a file that cannot be stored fails its run with one sentence, and stays on this machine", async () => {
    const running = await service();
    s3().intercept = (req, res) => {
      if (req.method === "PUT") refuse(res, 403, "AccessDenied");
      return req.method === "PUT";
    };
    for (const message of ["fox.png", "fox.png hold"]) {
      const { status_url, run_id } = await running.start(message);
      const { status, error, error_code, files } = await ended(running, status_url);
      assert.equal(status, "failed");
      assert.equal(error, 'The file "fox.png" could not be stored in s3://renders/ (403 AccessDenied).');
      assert.equal(error_code, "file.write-failed");
      assert.deepEqual(files, []);
      assert.ok(existsSync(join(folder(), "runs", run_id, "fox.png")));
    }
    const metrics = await (await running.get("/metrics")).text();
    assert.match(metrics, /latentkit_files_failed_total 2/);
    assert.match(metrics, /latentkit_runs_finished_total\{state="failed"\} 2/);
    assert.doesNotMatch(metrics + running.log(), new RegExp(S3_KEYS.secretAccessKey));
  });

  it("a cancelled run does not wait for its files", async () => {
    const running = await service();
    s3().intercept = (req) => req.method === "PUT";
    const { status_url } = await running.start("fox.png hold");
    await until(() => s3().requests.length > 0);
    await running.post(`${status_url}/cancel`, {});
    const { status, files } = await ended(running, status_url);
    assert.deepEqual([status, files], ["cancelled", []]);
  });

  it("a run that is cut off while its last file is on the way has not succeeded", async () => {
    const running = await service();
    s3().intercept = (req) => req.method === "PUT";
    const cut = await running.start("fox.png");
    await until(() => s3().requests.length === 1);
    await running.post(`${cut.status_url}/cancel`, {});
    assert.equal((await ended(running, cut.status_url)).status, "cancelled");
    const { run_id } = await running.start("fox.png");
    await until(() => s3().requests.length === 2);
    const end = running.hooks.runs.follow(run_id, 0);
    await running.hooks.close(0);
    let last = "";
    for await (const { events } of end) last = events.at(-1)!.data;
    assert.match(last, /"code":"interrupted"/);
  });

  it("a reader gets 503 while the bucket cannot be reached, and a cut response where it breaks off", async () => {
    const running = await service();
    const { status_url } = await running.start("fox.png");
    const { files } = await ended(running, status_url);
    s3().intercept = (req) => req.socket.destroy() !== undefined;
    const down = await running.get(files[0]!.url);
    assert.equal(down.status, 503);
    assert.doesNotMatch(await down.text(), /127\.0\.0\.1|ECONN|hang up/);
    s3().intercept = (_req, res) => {
      res.writeHead(200, { "Content-Length": "1000" }).write("half");
      setTimeout(() => res.destroy(), 20);
      return true;
    };
    await assert.rejects(running.get(files[0]!.url).then((response) => response.text()));
    s3().intercept = () => false;
    assert.equal(await (await running.get(files[0]!.url)).text(), "content of fox.png");
  });

  it("a reader that leaves ends the request to the bucket", async () => {
    const running = await service();
    const { status_url } = await running.start("fox.png");
    const { files } = await ended(running, status_url);
    let hasClosed = false;
    s3().intercept = (_req, res) => {
      res.writeHead(200, { "Content-Length": "1000" }).write("half");
      res.once("close", () => {
        hasClosed = true;
      });
      return true;
    };
    const abort = new AbortController();
    const response = await fetch(running.url + files[0]!.url, {
      headers: { authorization: `Bearer ${TOKEN}` },
      signal: abort.signal,
    });
    await response.body!.getReader().read();
    abort.abort();
    await until(() => hasClosed);
  });

  it("`files` of a configuration does the same, with keys of the environment", async () => {
    const before = { ...process.env };
    process.env.AWS_ACCESS_KEY_ID = S3_KEYS.accessKeyId;
    process.env.AWS_SECRET_ACCESS_KEY = S3_KEYS.secretAccessKey;
    try {
      const lines: string[] = [];
      const running = await startService(
        {
          port: 0,
          store: "memory:",
          files: s3().url,
          output_dir: folder(),
          channels: { web: { hooks_token: TOKEN } },
        },
        { log: (line) => lines.push(line) },
      );
      try {
        const response = await fetch(`${running.url}/hooks/agent`, {
          method: "POST",
          headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json", prefer: "wait=50" },
          body: JSON.stringify({ message: "a lake" }),
        });
        const { status, files } = (await response.json()) as { status: string; files: { url: string }[] };
        assert.equal(status, "succeeded", lines.join(""));
        const picture = await fetch(running.url + files[0]!.url, { headers: { authorization: `Bearer ${TOKEN}` } });
        const bytes = Buffer.from(await picture.arrayBuffer());
        assert.equal(bytes.toString("latin1", 1, 4), "PNG");
        assert.deepEqual([...s3().objects.values()][0]!.bytes, bytes);
      } finally {
        await running.close(0);
      }
      delete process.env.AWS_SECRET_ACCESS_KEY;
      await refuses(startService({ port: 0, store: "memory:", files: "s3://renders" }), "config.invalid", /AWS_SECRET/);
    } finally {
      process.env = before;
    }
  });
});

describe("front ends and workers with files in a bucket", () => {
  const url = postgres();
  const s3 = s3Server();
  const folder = temporaryFolder();
  const start = serviceStarter();

  it("a front end serves what a worker of another machine has put there", async () => {
    const schema = newSchema();
    const connect = () => createPostgresStore({ url, schema, connections: 3 });
    const scratch = join(folder(), "runs");
    const create = () => createS3Files({ url: s3().url, credentials: S3_KEYS, scratch });
    const front = await start({ store: connect(), files: create(), workers: true });
    const agent: Agent = async ({ id }, { addFile }) => {
      mkdirSync(join(scratch, id), { recursive: true });
      writeFileSync(join(scratch, id, "fox.png"), "a fox");
      return { response: addFile({ path: join(scratch, id, "fox.png") }).url };
    };
    const worker = await startWorker({ agent, store: connect(), files: create() });
    try {
      const { status_url, run_id } = await front.start("x");
      await until(async () => ((await (await front.get(status_url)).json()) as { done: boolean }).done);
      assert.equal(await (await front.get(`${status_url}/files/fox.png`)).text(), "a fox");
      await until(() => !existsSync(join(scratch, run_id)));
    } finally {
      await worker.close(0);
    }
  });
});
