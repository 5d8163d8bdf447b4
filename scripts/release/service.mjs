// The hook service of an installed release: with it, each package that the release carries itself is at work.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const PROGRAM = `
import { once } from "node:events";
import express from "express";
import { createHookService } from "latentkit/hooks";

const hooks = createHookService({ agent: async ({ message }) => ({ response: message }), config: { hooks_token: "embedded" } });
const server = express().use(hooks.router).listen(0, "127.0.0.1");
await once(server, "listening");
const at = "http://127.0.0.1:" + server.address().port;
const { paths } = await (await fetch(at + "/openapi.json")).json();
const metrics = await (await fetch(at + "/metrics")).text();
const headers = { authorization: "Bearer embedded", "content-type": "application/json" };
const run = await fetch(at + "/hooks/agent", { method: "POST", headers, body: JSON.stringify({ message: "hello" }) });
console.log(JSON.stringify([paths["/hooks/agent"] !== undefined, metrics.includes("latentkit_"), run.ok]));
await hooks.close();
server.close();
`;

/** Throws if the service does not answer, or does not name the wrong key of a configuration. */
export function checkService(project, env) {
  writeFileSync(join(project, "service.mjs"), PROGRAM);
  const answered = spawnSync(process.execPath, ["service.mjs"], { cwd: project, env, encoding: "utf8" });
  assert.equal(answered.stdout, "[true,true,true]\n", answered.stderr);
  writeFileSync(join(project, "wrong.yaml"), "channels:\n  web:\n    hooks_tokn: secret\n");
  const serve = ["node_modules/latentkit/bin/latentkit.mjs", "serve", "--config", "wrong.yaml"];
  const { status, stderr } = spawnSync(process.execPath, serve, {
    cwd: project,
    env,
    encoding: "utf8",
    timeout: 60_000,
  });
  assert.ok(status !== 0 && stderr.includes("hooks_tokn"), stderr);
}
