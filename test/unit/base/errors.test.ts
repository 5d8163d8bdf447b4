import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { runInNewContext } from "node:vm";
import { LatentkitError } from "latentkit";
import { atNode, inputError, messageOf, permissionHint } from "#src/base/errors.js";
import { deserializeError, serializeError } from "#src/base/sent-error.js";
import { root, temporaryFolder } from "../../helpers/folders.js";

describe("atNode", () => {
  it("puts a comma before a subject and a colon before a sentence", () => {
    const at = { nodeId: "1", node: "Loader" };
    const texts = [
      'input "a": expected 1, received 2.',
      'host "a" has none.',
      "Tensor data: expected a list, received 1.",
      "The file is gone.",
    ];
    assert.deepEqual(
      texts.map((text) => atNode(at, text)),
      [
        'Node 1 (Loader), input "a": expected 1, received 2.',
        'Node 1 (Loader): host "a" has none.',
        "Node 1 (Loader), Tensor data: expected a list, received 1.",
        "Node 1 (Loader): The file is gone.",
      ],
    );
    assert.deepEqual(
      [{ nodeId: "1" }, { node: "Loader" }, {}].map((less) => atNode(less, "Gone.")),
      ["Node 1: Gone.", "Loader: Gone.", "Gone."],
    );
  });
});

describe("LatentkitError", () => {
  it("keeps its message in JSON, alone and inside other values", () => {
    const error = inputError("input.missing", { nodeId: "5", node: "Noise", input: "seed" }, "a number", undefined);
    const expected = {
      name: "LatentkitError",
      code: "input.missing",
      message: 'Node 5 (Noise), input "seed": expected a number, received nothing.',
      details: { nodeId: "5", node: "Noise", input: "seed", expected: "a number", received: "nothing" },
    };
    assert.deepEqual(JSON.parse(JSON.stringify(error)), expected);
    assert.deepEqual(JSON.parse(JSON.stringify({ event: [error] })), { event: [expected] });
    const { message } = JSON.parse(JSON.stringify(new LatentkitError("node.failed", "No."))) as LatentkitError;
    assert.equal(message, "No.");
  });
});

describe("messageOf", () => {
  const failedFetch = (cause: unknown) => new TypeError("fetch failed", { cause });

  it("tells why a fetch failed, and something of an error without a message", async () => {
    const refused = Object.assign(new AggregateError([new Error("connect")], ""), { code: "ECONNREFUSED" });
    const cases: [thrown: unknown, message: string][] = [
      [failedFetch(refused), "fetch failed (ECONNREFUSED)"],
      [failedFetch(new Error("odd")), "fetch failed"],
      [refused, "ECONNREFUSED"],
      [new AggregateError([new Error("first"), new Error("second")], ""), "first"],
      [new RangeError(), "RangeError"],
      [new DOMException("", "AbortError"), "AbortError"],
      ["a text", "a text"],
    ];
    assert.deepEqual(
      cases.map(([thrown]) => messageOf(thrown)),
      cases.map(([, message]) => message),
    );
    await assert.rejects(fetch("http://127.0.0.1:3/", { signal: AbortSignal.timeout(10_000) }), (error) => {
      assert.match(messageOf(error), /^fetch failed \(ECONNREFUSED\)$/);
      return true;
    });
  });

  it("reads errors of another realm, and never throws", () => {
    assert.equal(messageOf(runInNewContext('new Error("of a test runner")')), "of a test runner");
    const endless = new Error("");
    Object.assign(endless, { errors: [endless] });
    for (const hostile of [Object.create(null), endless, new Proxy({}, { getPrototypeOf: () => assert.fail() })]) {
      assert.equal(messageOf(hostile), "an error that cannot be shown");
    }
  });
});

describe("an error between threads", () => {
  const sent = (error: unknown) => deserializeError(structuredClone(serializeError(error))) as NodeJS.ErrnoException;

  it("keeps name, code, stack and causes, and adds no hint twice", () => {
    const denied = Object.assign(new RangeError("denied"), { code: "ERR_ACCESS_DENIED", permission: "WorkerThreads" });
    const error = new LatentkitError("node.failed", "Node 1: denied.", { nodeId: "1" }, { cause: denied });
    const received = sent(error);
    assert.ok(received instanceof LatentkitError);
    assert.deepEqual(received.toJSON(), error.toJSON());
    assert.equal(received.stack, error.stack);
    const { name, code, message, stack } = received.cause as NodeJS.ErrnoException;
    assert.deepEqual([name, code, message, stack], ["RangeError", denied.code, "denied", denied.stack]);
    assert.deepEqual(Object.keys(received).sort(), Object.keys(error).sort());
  });

  it("is sent whatever a node throws", () => {
    const endless = new Error("endless");
    endless.cause = endless;
    const hostile = Object.defineProperty(new Error("hostile"), "cause", { get: () => assert.fail() });
    const thrown = [endless, hostile, "a text", undefined, Object.assign(new Error("odd"), { stack: () => {} })];
    const messages = ["endless", "hostile", "a text", "undefined", "odd"];
    assert.deepEqual(
      thrown.map((error) => sent(error).message),
      messages,
    );
    assert.equal((sent(new Error("outer", { cause: "text" })).cause as Error).message, "text");
  });
});

const PERMISSION = process.allowedNodeEnvironmentFlags.has("--permission")
  ? "--permission"
  : "--experimental-permission";
const moduleOf = (path: string) => JSON.stringify(pathToFileURL(join(root, "dist", path)).href);
const LIBRARY = `const { createRenderer, render } = await import(${moduleOf("index.js")});`;
const solid = { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color: 0 } };
const saved = { "1": solid, "2": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "a" } } };
const loaded = { "1": { class_type: "LoadImage", inputs: { image: "x.png" } }, "2": { ...saved[2] } };

describe("a denial of node's permission model", () => {
  const folder = temporaryFolder();

  /** Message of the error that code throws in a process that may only read the package. */
  async function messageOf(code: string, ...flags: string[]): Promise<string> {
    const program = `try {${code}} catch (error) { console.log(error.name, error.code, error.message); process.exit(); }`;
    const args = [PERMISSION, `--allow-fs-read=${join(root, "*")}`, ...flags, "--input-type=module", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
    return stdout.trim();
  }
  const rendering = (graph: object, options: object) =>
    `${LIBRARY} const { error } = await render(${JSON.stringify(graph)}, ${JSON.stringify(options)}); if (error) throw error;`;

  it("to load addons names the flag instead of an installation", async () => {
    const message = await messageOf(rendering(saved, { output: "memory" }));
    assert.match(
      message,
      /^LatentkitError native\.unavailable Node 2 \(SaveImage\): The native core could not be loaded /,
    );
    assert.match(message, /\)\. Node's permission model denied this: start node with --allow-addons\.$/);
  });

  it("to read or write files names the flag and the path", async () => {
    const inputDir = join(folder(), "in");
    mkdirSync(inputDir);
    const read = await messageOf(rendering(loaded, { inputDir, output: "memory" }), "--allow-addons");
    assert.match(read, /^LatentkitError \S+ Node 1 \(LoadImage\), input "image": expected a readable file, /);
    assert.match(read, / Node's permission model denied this: start node with --allow-fs-read=\S+\.$/);
    assert.ok(read.includes(folder()), read);
    const written = await messageOf(rendering(saved, { outputDir: join(folder(), "out") }), "--allow-addons");
    assert.match(written, /^LatentkitError file\.\S+ Node 2 \(SaveImage\): Cannot write "\S+": /);
    assert.match(written, / Node's permission model denied this: start node with --allow-fs-(read|write)=\S+\.$/);
    const flags = ["--allow-addons", `--allow-fs-read=${join(folder(), "*")}`];
    const rest = await messageOf(rendering(saved, { outputDir: join(folder(), "out") }), ...flags);
    const flag = / start node with (--allow-fs-write=\S+\/out\/\*)\.$/.exec(rest)?.[1];
    assert.ok(flag !== undefined, rest);
    assert.equal(await messageOf(rendering(saved, { outputDir: join(folder(), "out") }), ...flags, flag), "");
  });

  it("to start threads or processes names the flag", async () => {
    const thread = `${LIBRARY} await createRenderer().render({ graph: ${JSON.stringify(JSON.stringify(saved))} });`;
    const denied = "Node's permission model denied this: start node with";
    assert.match(
      await messageOf(thread, "--allow-addons"),
      new RegExp(
        `^LatentkitError thread\\.lost A rendering thread cannot be started .*\\. ${denied} --allow-worker\\.$`,
      ),
    );
    const child = `const { RuntimeProcess } = await import(${moduleOf("host/checkpoint/runtime/process.js")}); new RuntimeProcess();`;
    assert.match(
      await messageOf(child),
      new RegExp(
        `^LatentkitError runtime\\.failed The process of ONNX Runtime cannot be started .*\\. ${denied} --allow-child-process\\.$`,
      ),
    );
  });

  it("to write names the folder, since names of files differ from run to run", () => {
    for (const path of [join("/", "a b", "o"), join("/", "a b", "o", ".latentkit-fd5e76.tmp")]) {
      const denial = { code: "ERR_ACCESS_DENIED", permission: "FileSystemWrite", resource: path };
      const flag = `--allow-fs-write=${join("/", "a b", "o", "*")}`;
      assert.equal(permissionHint(denial), `Node's permission model denied this: start node with ${flag}.`);
    }
  });

  it("is told from other errors", () => {
    for (const error of [undefined, null, "x", new Error("x"), Object.assign(new Error("x"), { code: "EACCES" })])
      assert.equal(permissionHint(error), undefined);
    // without the permission model, node was told not to load addons
    assert.equal(permissionHint({ code: "ERR_DLOPEN_DISABLED" }), undefined);
  });
});
