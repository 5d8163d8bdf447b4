import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, temporaryFolder } from "../../../helpers/folders.js";

const PROGRAM = `
import { createServer } from "node:http";
import { type Agent, createHookService, createMemoryStore, type HookConfigInput, type HookRouter } from "latentkit/hooks";
import { createServer as createWholeServer } from "latentkit/service";

const agent: Agent = async ({ message }, { emit, signal }) => {
  emit("delta", { delta: message });
  signal.throwIfAborted();
  return { response: message };
};
const config: HookConfigInput = { hooks_token: "x", metrics: "token", limits: { running: 2, pending_wakes: 9 } };
export const hooks = createHookService({ agent, config, store: createMemoryStore() });
const router: HookRouter = hooks.router;
createServer((req, res) => router(req, res, () => res.end()));
createWholeServer({ hooks, port: 0 });
// @ts-expect-error
createHookService({ agent: 5, config });
`;

const EXPRESS_PROGRAM = `
import express from "express";
import { hooks } from "./program.js";

const app = express();
app.use(hooks.router);
app.use("/automation", express.json(), hooks.router);
express.Router().use(hooks.router);
`;

/** Packages whose types the package's own refer to; @types/express is not among them. */
const PACKAGES = ["zod", "pino", "@types/node", "undici-types"];

describe("types of latentkit/hooks in a strict project", () => {
  const folder = temporaryFolder();

  function makeConsumer(packages: readonly string[], files: Readonly<Record<string, string>>): void {
    const modules = join(folder(), "node_modules");
    const own = join(modules, "latentkit");
    mkdirSync(join(modules, "@types"), { recursive: true });
    cpSync(join(root, "dist"), join(own, "dist"), {
      recursive: true,
      filter: (path) => !/\.[cm]?js$/.test(path),
    });
    // a copy: a link would lead the compiler to this repository's own packages
    writeFileSync(join(own, "package.json"), readFileSync(join(root, "package.json")));
    for (const name of packages) symlinkSync(join(root, "node_modules", name), join(modules, name), "dir");
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder(), name), text);
  }

  function compile(options: readonly string[], files: readonly string[]): string {
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const strict = [
      "--strict",
      "--skipLibCheck",
      "false",
      "--skipDefaultLibCheck",
      "--noEmit",
      "--target",
      "es2022",
      "--types",
      "node",
      "--singleThreaded",
    ];
    const done = spawnSync(process.execPath, [tsc, ...strict, ...options, ...files], {
      cwd: folder(),
      encoding: "utf8",
      timeout: 240_000,
    });
    return `${done.status}\n${done.stdout}${done.stderr}`;
  }

  const NODE = ["--module", "nodenext", "--moduleResolution", "nodenext"];
  const BUNDLER = ["--module", "esnext", "--moduleResolution", "bundler"];

  for (const [name, options] of [
    ["nodenext", NODE],
    ["node16", ["--module", "node16", "--moduleResolution", "node16"]],
    ["bundler", BUNDLER],
  ] as const) {
    it(`need no types of Express (${name})${name === "nodenext" ? "" : " @long"}`, () => {
      makeConsumer(PACKAGES, { "program.ts": PROGRAM, "package.json": '{"type":"module"}' });
      assert.equal(compile(options, ["program.ts"]), "0\n");
    });
  }

  it("fit app.use of Express 5 @long", () => {
    const files = { "program.ts": PROGRAM, "app.ts": EXPRESS_PROGRAM, "package.json": '{"type":"module"}' };
    makeConsumer([...PACKAGES, "@types/express"], files);
    for (const options of [NODE, BUNDLER]) {
      assert.equal(compile([...options, "--esModuleInterop"], ["program.ts", "app.ts"]), "0\n");
    }
  });
});
