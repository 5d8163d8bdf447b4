// One run of the hook service over HTTP.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { decodePng } from "../../dist/index.js";
import { root } from "../setup.mjs";
import { STRICT } from "./machine.mjs";

const TOKEN = "a-token-of-the-check-0123456789";
const LONGEST_MS = 300_000;

/**
 * Starts the service, lets it render one message, stops it, and returns the SHA-256 of the picture's pixels. Throws where
 * a step fails, and where stderr has anything but lines of the log.
 * @param {import("./machine.mjs").Machine} machine
 * @param {string[]} args of `latentkit serve`
 */
export async function pixelsOfService({ command: [program, ...first], env, name }, args = []) {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-service-"));
  const command = [join(root, "bin/latentkit.mjs"), "serve", "--port", "0", "--json", "--quiet", ...args];
  const service = spawn(program, [...first, ...command], {
    cwd: folder,
    env: { ...env, NODE_OPTIONS: STRICT, LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: TOKEN },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(service, "close");
  let log = "";
  service.stderr.setEncoding("utf8").on("data", (text) => {
    log += text;
  });
  const timer = setTimeout(() => service.kill("SIGKILL"), LONGEST_MS);
  try {
    const lines = createInterface(service.stdout);
    const [listening] = await Promise.race([once(lines, "line"), ended.then(() => [undefined])]);
    assert.ok(listening, `the service does not start:\n${log}`);
    const pixels = await renderOnce(JSON.parse(listening).url);
    service.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null], `end of the service:\n${log}`);
    const foreign = log.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
    assert.deepEqual(foreign, [], `${name}: lines that are not of the log`);
    return pixels;
  } finally {
    clearTimeout(timer);
    service.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

async function renderOnce(url) {
  const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };
  /** @param {RequestInit} [options] */
  const request = async (path, options) => {
    const response = await fetch(url + path, { headers, ...options });
    assert.equal(response.status, 200, `${path}: ${response.statusText}`);
    return response;
  };
  /** @param {RequestInit} [options] */
  const json = async (path, options) => /** @type {any} */ (await (await request(path, options)).json());
  const body = JSON.stringify({ message: "a quiet lake" });
  const { run_id, stream_url } = await json("/hooks/agent", { method: "POST", body });
  const events = await (await request(stream_url)).text();
  assert.match(events, /^event: done$/m);
  const { files } = await json(`/api/runs/${run_id}`);
  const picture = await decodePng(new Uint8Array(await (await request(files[0].url)).arrayBuffer()));
  return createHash("sha256").update(picture.data).digest("hex");
}
