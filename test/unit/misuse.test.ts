import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import * as api from "#src/index.js";
import * as hooks from "#src/service/hooks/index.js";
import * as service from "#src/service/index.js";
import { refuses } from "../helpers/errors.js";

type AnyFunction = (...args: unknown[]) => unknown;

const KNOWN: readonly unknown[] = [
  undefined,
  null,
  5,
  -1,
  Number.NaN,
  1n,
  "x",
  "",
  true,
  Symbol("odd"),
  () => {},
  [],
  [2],
  [null],
  {},
  { a: null },
  new Map(),
  new Date(Number.NaN),
  Object.create(null),
  api.Tensor.zeros([2]),
  new Uint8Array(3),
];

const logger = service.createLogger({ level: "silent" });
const embedding = { agent: async () => ({ response: "" }), config: {}, logger };

/** Right arguments, of which the walk makes one after the other wrong. */
const RIGHT: Readonly<Record<string, readonly unknown[]>> = {
  "Tensor.from": [[1, 2], [2]],
  "Tensor.full": [[2], 1],
  "generator.randn": [[2], api.Tensor.zeros([2])],
  batch: [{}, []],
  choice: [["a"], { default: "a" }],
  createGraphAgent: [{ graph: { 1: { class_type: "SolidMask", inputs: {} } }, outputDir: "x", threads: 1 }],
  createRegistry: [[], api.registry],
  decodePng: [new Uint8Array(40)],
  defineNode: [{ key: "a", inputs: { value: api.int() }, outputs: { value: "INT" }, run: () => [1] }],
  createServer: [{ hooks: hooks.createHookService(embedding), logger }],
  createHookService: [embedding],
  encodePng: [api.Tensor.zeros([1, 1]), { level: 1, text: { a: "b" } }],
  encodePrompt: [{ encoders: [{}] }, "a fox"],
  executeGraph: [{}],
  invokeNode: ["ext imageToMask", { image: api.Tensor.zeros([1, 1, 1, 3]), channel: "red" }],
  modelSampling: ["svd"],
  parsePrompt: ["a (fox:1.2)"],
  randn: [[2], { seed: 1, source: "GPU", card: { threads: 256 } }],
  render: [
    { 1: { class_type: "SolidMask", inputs: {} } },
    { targets: ["1"], set: { "1.value": 1 }, redact: ["1.value"] },
  ],
  sigmas: [{ scheduler: "karras", steps: 2, model: "sd15" }],
  tokenizePrompt: ["a fox", { tokenize: () => [1] }],
  validateGraph: [{ 1: { class_type: "SolidMask", inputs: {} } }, { targets: ["1"] }],
};

/** A configuration without keys is right: it would take the default port. */
const isRight = (name: string, [config]: readonly unknown[]): boolean =>
  name === "startService" && /^(\{\}|\[Object: null prototype\] \{\})$/.test(inspect(config));

const functions: [string, AnyFunction][] = [];
for (const [name, value] of Object.entries({ ...api, ...hooks, ...service })) {
  if (typeof value !== "function" || /^class /.test(Function.prototype.toString.call(value))) continue;
  functions.push([name, value as AnyFunction]);
}
for (const name of ["from", "zeros", "full"] as const) {
  functions.push([`Tensor.${name}`, (...args) => (api.Tensor[name] as AnyFunction)(...args)]);
}
const tensor = api.Tensor.zeros([2]);
functions.push(["tensor.reshape", (shape) => tensor.reshape(shape as number[])]);
functions.push(["tensor.hasShape", (shape) => tensor.hasShape(shape as number[])]);
const generator = api.createGenerator({ seed: 1, source: "GPU" });
functions.push(["generator.randn", (...args) => generator.randn(args[0] as number[], args[1] as api.Tensor)]);
const sampling = api.modelSampling("sd15");
functions.push(["sampling.sigma", (at) => sampling.sigma(at as number)]);
functions.push(["sampling.timestep", (at) => sampling.timestep(at as number)]);
functions.push(["registry.get", (key) => api.registry.get(key as string)]);
functions.push(["registry.has", (key) => api.registry.has(key as string)]);
const host = api.createPreviewHost();
functions.push(["host.loadCheckpoint", (name) => host.loadCheckpoint(name as string)]);

function* calls(name: string): Generator<unknown[]> {
  yield [];
  for (const value of KNOWN) yield [value];
  const right = RIGHT[name] ?? [];
  for (let at = 0; at <= right.length; at++) {
    const args = [right.slice(0, at), right[at], right.slice(at + 1)] as const;
    for (const value of KNOWN) yield [...args[0], value, ...args[2]];
    if (args[1] === undefined || Object.getPrototypeOf(args[1]) !== Object.prototype) continue;
    for (const key of Object.keys(args[1] as object)) {
      for (const value of KNOWN) yield [...args[0], { ...(args[1] as object), [key]: value }, ...args[2]];
    }
  }
}

describe("wrong arguments", () => {
  const started = process.cwd();
  let folder = "";
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-"));
    process.chdir(folder);
  });
  after(() => {
    process.chdir(started);
    rmSync(folder, { recursive: true, force: true });
  });

  it("bytes that are not a picture are refused without a word of the core's functions", async () => {
    const whole = await api.encodePng(api.Tensor.full([8, 8, 3], 0.5));
    for (const bytes of [new Uint8Array(40), whole.subarray(0, 60), Buffer.from(whole).fill(0, 45, 50)]) {
      await refuses(api.decodePng(bytes), "png.invalid", /^PNG: (it|the|a) [^:]+\.$/);
    }
  });

  for (const [name, run] of functions) {
    it(`${name} takes them or throws a LatentkitError, and nothing else`, async () => {
      for (const args of calls(name)) {
        if (isRight(name, args)) continue;
        const call = `${name}(${args.map((value) => inspect(value, { breakLength: Infinity }).slice(0, 80)).join(", ")})`;
        try {
          const result = await run(...args);
          if (Object.prototype.toString.call(result) === "[object AsyncGenerator]") {
            for await (const _ of result as AsyncIterable<unknown>);
          }
          await (result as { close?(seconds?: number): Promise<void> } | undefined)?.close?.(0);
        } catch (error) {
          assert.ok(error instanceof api.LatentkitError, `${call}: ${error instanceof Error ? error.stack : error}`);
          assert.match(error.message, /^[^\n]+[.?)]$/, call);
          assert.doesNotMatch(error.message, /undefined is not|Cannot read|\[object /, call);
        }
      }
    });
  }

  it("leave no file behind", () =>
    assert.deepEqual(
      readdirSync(folder).filter((file) => !/^x/.test(file)),
      [],
    ));
});
