// The service under attack, in a process and a folder of its own.
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { closeSockets, get, open, post, request } from "./http.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TOKEN = "attack-token-attack-token";
const SENDER_SECRET = "attack-secret-attack-secret";
const SENDERS = Object.fromEntries(
  ["github", "stripe", "slack"].map((signature) => [
    signature,
    { signature, secrets: SENDER_SECRET, message: "{{/a/b/c}}{{}}", when: { "/a/b": "x" } },
  ]),
);
/** The header that GitHub adds to a body. */
export const signed = (body) =>
  `X-Hub-Signature-256: sha256=${createHmac("sha256", SENDER_SECRET).update(body).digest("hex")}`;
export const AUTH = `Authorization: Bearer ${TOKEN}`;
/** The longest wait for a start or within an attack. */
export const PATIENCE_MS = 20_000;

/** Runs: "events N BYTES" emits deltas so that the run has N events; "file BYTES" reports a file. */
const AGENT = `
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
export default async ({ id, message }, { emit, addFile }) => {
  const [what, ...numbers] = message.split(" ");
  const [first, second] = numbers.map(Number);
  if (what === "events") {
    // status and done are events too
    for (let i = 0; i < first - 2; i++) {
      emit("delta", { delta: "x".repeat(second) });
      if (i % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  if (what === "file") {
    const path = fileURLToPath(new URL(id + ".bin", import.meta.url));
    writeFileSync(path, Buffer.alloc(first));
    return { response: addFile({ path }).name };
  }
  return { response: "done" };
};
`;

/**
 * @param {{ rendersGraph?: boolean, models?: (folder: string) => string }} attack `models` returns a folder of models, which
 * it may write at the path that it gets.
 */
export async function startService({ models, rendersGraph = models !== undefined }) {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-attack-"));
  const modelsFolder = models?.(join(folder, "models"));
  writeFileSync(join(folder, "agent.mjs"), AGENT);
  const config = {
    port: 0,
    store: `sqlite:${join(folder, "attack.db")}`,
    output_dir: join(folder, "out"),
    ...(modelsFolder && { models: [modelsFolder] }),
    // else the example graph of the package
    ...(rendersGraph ? {} : { agent: { module: join(folder, "agent.mjs") } }),
    channels: {
      web: {
        hooks_token: TOKEN,
        incoming: SENDERS,
        // they need the graphs of the package's own agent
        ...(rendersGraph && { comfy_api: true, comfy_inputs: true, comfy_classic: "token" }),
      },
    },
    // one rendering thread, whatever the machine
    limits: rendersGraph ? { running: 1 } : { running_per_session: 4 },
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  const child = spawn(
    process.execPath,
    [join(ROOT, "bin/latentkit.mjs"), "serve", "--config", join(folder, "config.json"), "--json", "--quiet"],
    { stdio: ["ignore", "pipe", "pipe"], cwd: folder },
  );
  child.stderr.resume();
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const url = await withTimeout(
    new Promise((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`the service ended with code ${code} before it listened`)));
      createInterface(child.stdout).once("line", (line) => resolve(JSON.parse(line).url));
    }),
    PATIENCE_MS,
  );
  const port = Number(new URL(url).port);
  const send = (text) => request(port, text);
  const service = {
    url,
    send,
    get: (path, headers = []) => send(get(path, [...headers, "Connection: close"])),
    post: (path, body) =>
      send(post(path, [AUTH, "Content-Type: application/json", "Connection: close"], JSON.stringify(body))),
    /** Starts a run and waits for its end. */
    async run(message) {
      const run = JSON.parse((await service.post("/hooks/agent", { message })).text);
      for (;;) {
        const { done } = JSON.parse((await service.get(run.status_url, [AUTH])).text);
        if (done) return run;
        await sleep(50);
      }
    },
    /** A client that writes and never reads. */
    pausedSocket(text) {
      const socket = open(port).pause();
      socket.write(text);
      return socket;
    },
    /** Resident bytes of the service. */
    memory: () => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) * 1024,
    async stop() {
      closeSockets();
      const ended = once(child, "exit");
      kill();
      process.off("exit", kill);
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return service;
}

export function withTimeout(work, ms) {
  const late = sleep(ms, undefined, { ref: false }).then(() => {
    throw new Error(`it took longer than ${ms / 1000} s`);
  });
  return Promise.race([work, late]);
}
