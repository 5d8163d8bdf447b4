import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { decodePng } from "latentkit";
import { main } from "#src/cli/main.js";
import type { Terminal } from "#src/cli/terminal.js";
import { filesIn, temporaryFolder } from "../../../helpers/folders.js";
import { latentkit } from "../../../helpers/process/cli.js";
import { eventsOf, get, type Serving, serve, start, TOKEN } from "../../../helpers/process/serve.js";
import { skip } from "../../../helpers/skip.js";

/** Says what it was told to, after a while; "wait for go" waits for a file of this name. */
const SLOW_AGENT = `
  import { existsSync } from "node:fs";
  export default async ({ message }, { signal, emit }) => {
    emit("delta", { delta: message });
    if (message.startsWith("crash")) setTimeout(() => { throw new Error("thrown in a timer"); }, 50);
    if (message === "forget") void Promise.reject(new Error("nobody listens"));
    while (message === "wait for go" && !existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
    const ms = Number(/[0-9]+/.exec(message)?.[0] ?? 0);
    await new Promise((resolve) => { setTimeout(resolve, ms); signal.addEventListener("abort", resolve); });
    return { response: message.toUpperCase() };
  };
`;

describe("latentkit serve", () => {
  const folder = temporaryFolder();
  let running: Serving[] = [];
  const open = async (args: string[] = [], env: Record<string, string> = {}) => {
    const service = await serve(args, { cwd: folder(), env });
    running.push(service);
    return service;
  };
  const write = (name: string, text: string) => {
    writeFileSync(join(folder(), name), text);
    return join(folder(), name);
  };
  const openSlow = (limits: object = {}) => {
    write("agent.mjs", SLOW_AGENT);
    return open(["--config", write("c.json", JSON.stringify({ agent: { module: "./agent.mjs" }, limits }))]);
  };
  const stateOf = async (service: Serving, { status_url }: { status_url: string }) =>
    ((await (await get(service.url + status_url)).json()) as { status: string }).status;
  const started = async (service: Serving, run: { status_url: string }) => {
    while ((await stateOf(service, run)) === "queued") await sleep(10);
  };
  afterEach(async () => {
    for (const { child } of running) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGKILL");
      await once(child, "close");
    }
    running = [];
  });

  it("--graph names graphs, SIGHUP reads them again, and a wrong one changes nothing", async () => {
    const graph = (name: string) =>
      JSON.stringify({
        1: {
          class_type: "ext saveTextLazy",
          inputs: {
            text: "{{message}}",
            output_file_path: ".",
            file_name: name,
            file_extension: "txt",
            overwrite: true,
          },
        },
      });
    write("a.json", graph("first"));
    write("b.json", graph("b"));
    const service = await open(["--graph", "a=a.json", "--graph", "b=b.json"]);
    const fileOf = async (body: object) => {
      const run = await start(service.url, body);
      const events = eventsOf(await (await get(service.url + run.stream_url)).text());
      return events.find(({ event }) => event === "file")?.data.filename;
    };
    assert.equal(await fileOf({ message: "x", graph: "b" }), "b.txt");
    assert.equal(await fileOf({ message: "x" }), "first.txt");
    const hangUp = async (sentence: RegExp) => {
      service.child.kill("SIGHUP");
      while (!sentence.test(service.output.err)) await sleep(10);
    };
    write("a.json", graph("second"));
    write("b.json", "{");
    await hangUp(/Graphs not reloaded: .*b\.json/);
    assert.equal(await fileOf({ message: "x" }), "first.txt");
    write("b.json", graph("b"));
    await hangUp(/Graphs reloaded\./);
    assert.equal(await fileOf({ message: "x" }), "second.txt");
    assert.equal(await service.stop(), 0);
    const twice = await latentkit(["serve", "--graph", "a=a.json", "--graph", "a=b.json"], { cwd: folder() });
    assert.equal(twice.code, 2);
    assert.match(twice.stderr, /--graph: expected the name "a" once/);
  });

  /** Starts with --open, and returns the address that a browser was started with. */
  const openInBrowser = async (env: Record<string, string> = {}) => {
    const bin = join(folder(), "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "xdg-open"), '#!/bin/sh\necho "$1" > "$OPENED.part" && mv "$OPENED.part" "$OPENED"\n', {
      mode: 0o755,
    });
    const opened = join(folder(), "opened");
    const service = await open(["--open"], { PATH: `${bin}:${process.env.PATH}`, OPENED: opened, ...env });
    while (!existsSync(opened)) await sleep(10);
    return { service, address: readFileSync(opened, "utf8").trimEnd() };
  };

  it("--open without a token: makes one for this start, which nothing prints", async function () {
    if (process.platform !== "linux") skip(this, "the program that opens addresses is another one here");
    const { service, address } = await openInBrowser({ LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: " " });
    const [page, token] = address.split("#token=");
    assert.equal(page, `${service.url}/`);
    assert.match(token!, /^[0-9a-f]{48}$/);
    const status = async (used: string) =>
      (await fetch(`${service.url}/api/runs`, { headers: { Authorization: `Bearer ${used}` } })).status;
    assert.equal(await status(token!), 200);
    assert.equal(await status(token!.replace(/^./, "x")), 401);
    assert.match(
      service.output.err,
      /valid until this service stops.*\n {2}export LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN=/,
    );
    assert.equal(await service.stop(), 0);
    assert.ok(!`${service.output.out}${service.output.err}`.includes(token!), "no output holds the token");
  });

  it("--open opens the page in the browser; prints the address if no program does", async function () {
    if (process.platform !== "linux") skip(this, "the program that opens addresses is another one here");
    const { service, address } = await openInBrowser();
    assert.equal(address, `${service.url}/`);
    await service.stop();
    const tokenless = { PATH: join(folder(), "none"), LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: "" };
    const without = await open(["--open"], tokenless);
    while (!without.output.err.includes("xdg-open was not found")) await sleep(10);
    assert.match(without.output.err, /set a hook token as shown above, start again, and open http.*\/ in a browser/);
    await without.stop();
    const closed = await open(["--open"], { PATH: join(folder(), "none") });
    while (!closed.output.err.includes("xdg-open was not found")) await sleep(10);
    assert.ok(closed.output.err.includes(`xdg-open was not found: open ${closed.url}/ in a browser.`));
    await closed.stop();
    mkdirSync(join(folder(), "blind"));
    writeFileSync(join(folder(), "blind/xdg-open"), "#!/bin/sh\nexit 3\n", { mode: 0o755 });
    const blind = await open(["--open"], { PATH: join(folder(), "blind") });
    while (!blind.output.err.includes("xdg-open did not")) await sleep(10);
    assert.ok(blind.output.err.includes(`xdg-open did not open a browser: open ${blind.url}/ in a browser.`));
    await blind.stop();
    const config = write("no-page.json", JSON.stringify({ page: false, store: "memory:" }));
    const refused = await latentkit(["serve", "--open", "--config", config], { cwd: folder() });
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /--open needs the page, but the configuration has page: false/m);
  });

  it("renders the example graph for a message, streams it, and serves the PNG", async () => {
    const service = await open();
    const run = await start(service.url, { message: "a quiet lake" });
    const events = eventsOf(await (await get(service.url + run.stream_url)).text());
    const image = events.find(({ event }) => event === "image")!.data;
    const done = events.at(-1)!;
    assert.equal(done.event, "done");
    assert.deepEqual(JSON.parse(String(done.data.response)), [image]);
    const response = await get(service.url + String(image.url));
    assert.deepEqual([response.status, response.headers.get("content-type")], [200, "image/png"]);
    const bytes = Buffer.from(await response.arrayBuffer());
    const { width, height, text } = await decodePng(bytes);
    assert.deepEqual([width, height], [512, 512]);
    assert.match(text.prompt!, /a quiet lake/);
    assert.deepEqual(readFileSync(join(folder(), "out", String(image.subfolder), String(image.filename))), bytes);
    assert.equal(await service.stop(), 0);
    assert.match(
      service.output.out,
      /^\{"type":"listening","url":"http:\/\/127\.0\.0\.1:\d+"\}\n\{"type":"stopped"\}\n$/,
    );
    assert.equal(`${service.output.out}${service.output.err}`.includes(TOKEN), false);
    assert.ok(existsSync(join(folder(), "latentkit.db")));
  });

  it("prints a command line that starts a run and shows its stream", async () => {
    const { url, output } = await open();
    const line = output.err.split("\n").find((text) => text.startsWith("  curl "))!;
    assert.ok(line.includes(`${url}/hooks/agent`), output.err);
    const env = { ...process.env, LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: TOKEN };
    const { stdout, stderr, status } = spawnSync("bash", ["-euo", "pipefail", "-c", line], {
      encoding: "utf8",
      env,
      timeout: 120_000,
    });
    assert.equal(status, 0, stderr);
    assert.deepEqual(
      ["replay_meta", "image", "done"].map((name) => eventsOf(stdout).some(({ event }) => event === name)),
      [true, true, true],
    );
  });

  it("without a token: prints how to set one, responds 503", async () => {
    const service = await open([], { LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: "", LATENTKIT_STORE: "memory:" });
    assert.match(service.output.err, /No hook token is set/);
    const line = service.output.err.split("\n").find((text) => text.startsWith("  export "))!;
    const echo = spawnSync("bash", ["-c", `${line}; printf %s "$LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN"`], {
      encoding: "utf8",
    });
    assert.match(echo.stdout, /^[0-9a-f]{48}$/);
    const response = await fetch(`${service.url}/hooks/agent`, { method: "POST", body: "{}" });
    assert.equal(response.status, 503);
    assert.equal((await fetch(`${service.url}/health`)).status, 200);
    assert.equal(await service.stop("SIGINT"), 0);
    assert.deepEqual(filesIn(folder()), []);
  });

  it("reads configuration, agent and token from a file; logs JSON lines to stderr", async () => {
    write("agent.mjs", SLOW_AGENT);
    const config = write(
      "latentkit.yaml",
      `agent: { module: ./agent.mjs }\nstore: "memory:"\nchannels: { web: { hooks_token: ["other", "${TOKEN}"] } }\n`,
    );
    const service = await open(["--config", config, "--quiet"], { LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: "" });
    const run = await start(service.url, { message: "hello" });
    const events = eventsOf(await (await get(service.url + run.stream_url)).text());
    assert.deepEqual(events.at(-1), { event: "done", data: { response: "HELLO" } });
    assert.equal(await service.stop(), 0);
    const lines = service.output.err
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { msg: string; run_id?: string });
    assert.ok(lines.some(({ msg, run_id }) => msg === "run ended" && run_id === run.run_id));
    assert.equal(service.output.err.includes(TOKEN), false);
  });

  it("prints where runs and files go", async () => {
    const keys = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "hush" };
    const { output } = await open([], { LATENTKIT_FILES: "s3://renders/a", ...keys });
    assert.match(output.err, /^Files are written to s3:\/\/renders\/a, runs are stored in sqlite:.*latentkit\.db\.$/m);
    assert.doesNotMatch(output.err, /hush/);
  });

  it("bad configuration: one sentence, exit code 3, nothing left open", async () => {
    const refused = async (args: string[], code: number, pattern: RegExp, more: Record<string, string> = {}) => {
      const printed = { out: "", err: "" };
      const terminal: Terminal = {
        out: (text) => {
          printed.out += text;
        },
        err: (text) => {
          printed.err += text;
        },
        isTerminal: false,
        columns: 80,
        color: false,
        env: { LATENTKIT_STORE: "memory:", LATENTKIT_OUTPUT_DIR: folder(), ...more },
      };
      const ended = await main(["serve", "--port", "0", ...args], terminal);
      const lines = printed.err.split("\n").filter((line) => !line.startsWith("{") && line !== "");
      assert.deepEqual([ended, printed.out, lines.length], [code, "", 1], printed.err);
      assert.match(lines[0]!, pattern);
    };
    await refused(["--host", "0.0.0.0"], 3, /hooks_token.*received "0\.0\.0\.0"/);
    await refused(["--host", "::"], 3, /loopback/);
    await refused(["--host", "0.0.0.0"], 3, /loopback/, { LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: "  " });
    await refused([], 3, /Cannot open the PostgreSQL store at postgres:\/\/127\.0\.0\.1:1\/db: .*ECONNREFUSED/, {
      LATENTKIT_STORE: "postgres://user:secret@127.0.0.1:1/db",
    });
    await refused(["--port", "70000"], 2, /--port/);
    await refused(["--graph", "hook.json"], 2, /--graph: expected NAME=FILE, received "hook\.json"/);
    await refused(["extra"], 2, /Usage/);
    await refused(["--config", write("a.json", '{"stor": 1}')], 3, /unknown key "stor"\. Did you mean "store"/);
    await refused(["--config", write("b.json", '{"agent": {"module": "./none.mjs"}}')], 3, /none\.mjs/);
    await refused(["--config", write("c.json", '{"agent": {"graph": "./none.json"}}')], 2, /none\.json does not exist/);
    await refused([], 3, /latentkit\.db|store|database/i, { LATENTKIT_STORE: "sqlite:./no/such/folder/latentkit.db" });
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    await refused(["--port", String((other.address() as AddressInfo).port)], 3, /EADDRINUSE/);
    other.close();
  });

  it("refuses a second process on the same store", async () => {
    await open();
    const second = await latentkit(["serve", "--port", "0", "--quiet"], {
      cwd: folder(),
      env: { LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: TOKEN },
    });
    assert.equal(second.code, 3);
    assert.match(second.stderr, /latentkit\.db/);
  });

  it("first signal: lets runs end and stores their output", async () => {
    const service = await openSlow();
    const run = await start(service.url, { message: "wait for go" });
    await started(service, run);
    const stopped = service.stop();
    const sentence = /Stopping: running runs have up to \d+ s to finish\. Press Ctrl-C again to stop immediately\./;
    while (!sentence.test(service.output.err)) await sleep(10);
    write("go", "");
    assert.equal(await stopped, 0);
    const again = await openSlow();
    assert.equal(await stateOf(again, run), "succeeded");
    const events = eventsOf(await (await get(again.url + run.stream_url)).text());
    assert.deepEqual(events.at(-1), { event: "done", data: { response: "WAIT FOR GO" } });
  });

  it("interrupts runs after the drain, stops at once at a second signal @long", async () => {
    const service = await openSlow({ drain_seconds: 1 });
    const run = await start(service.url, { message: "wait 1000000" });
    await started(service, run);
    assert.equal(await service.stop(), 0);
    const again = await openSlow({ drain_seconds: 600 });
    assert.equal(await stateOf(again, run), "interrupted");
    await started(again, await start(again.url, { message: "wait 1000000" }));
    again.child.kill("SIGINT");
    while (!again.output.err.includes("Stopping: ")) await sleep(10);
    assert.equal(await again.stop("SIGINT"), 130);
  });

  it("reports runs of a killed process as interrupted", async () => {
    const service = await openSlow({ running: 1 });
    const run = await start(service.url, { message: "wait 1000000" });
    const queued = await start(service.url, { message: "next" });
    await started(service, run);
    await service.stop("SIGKILL");
    const again = await openSlow();
    const events = eventsOf(await (await get(again.url + run.stream_url)).text());
    assert.deepEqual([events.at(-1)!.event, events.at(-1)!.data.code], ["error", "interrupted"]);
    assert.equal(eventsOf(await (await get(again.url + queued.stream_url)).text()).at(-1)!.event, "done");
  });

  it("agent throws in a timer: its run fails, others end, exit code 1 @long", async () => {
    const service = await openSlow({ running_per_session: 2, running: 2 });
    const other = await start(service.url, { message: "wait 3000" });
    const crashing = await start(service.url, { message: "crash 60000" });
    const queued = await start(service.url, { message: "next" });
    const stream = get(service.url + crashing.stream_url).then((response) => response.text());
    if (service.child.exitCode === null) await once(service.child, "close");
    assert.equal(service.child.exitCode, 1, service.output.err);
    assert.deepEqual(eventsOf(await stream).at(-1), {
      event: "error",
      data: { error: "thrown in a timer", code: "agent_failed" },
    });
    const lines = service.output.err.split("\n").filter((line) => line.startsWith("{"));
    const logged = lines.map((line) => JSON.parse(line) as { msg: string; run_id?: string; err?: { stack: string } });
    const line = logged.find(({ msg }) => msg === "uncaught exception")!;
    assert.equal(line.run_id, crashing.run_id);
    assert.match(line.err!.stack, /agent\.mjs/);
    const again = await openSlow();
    assert.equal(await stateOf(again, other), "succeeded");
    assert.equal(await stateOf(again, crashing), "failed");
    assert.equal(eventsOf(await (await get(again.url + queued.stream_url)).text()).at(-1)!.event, "done");
  });

  it("warns of an unknown variable", async () => {
    const { output } = await open([], { LATENTKIT_LIMITS_RUNING: "2" });
    assert.match(output.err, /LATENTKIT_LIMITS_RUNING sets nothing\. Did you mean LATENTKIT_LIMITS_RUNNING\?/);
  });

  it("survives an agent's unhandled rejection and logs it", async () => {
    const service = await openSlow();
    const run = await start(service.url, { message: "forget" });
    assert.equal(eventsOf(await (await get(service.url + run.stream_url)).text()).at(-1)!.event, "done");
    assert.match(service.output.err, /unhandled rejection/);
    assert.match(service.output.err, /nobody listens/);
    assert.equal(await service.stop(), 0);
  });
});
