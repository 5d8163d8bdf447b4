import assert from "node:assert/strict";
import { join } from "node:path";
import { createPreviewHost, invokeNode, LatentkitError, registry, Tensor } from "latentkit";
import { temporaryFolder, tree } from "../../helpers/folders.js";
import { goodInputs } from "../../helpers/graph/node-inputs.js";

interface Bad {
  what: string;
  value: unknown;
  code: string;
}

type Spec = NonNullable<ReturnType<typeof registry.get>>["inputs"][string];

const tensor = Tensor.zeros([3]);

/** Values that are of no use for a type. */
const WRONG: Record<string, unknown[]> = {
  INT: ["abc", {}, [], [1], "1e3", "", () => 1],
  FLOAT: ["abc", {}, [], ""],
  STRING: [{}, [], ["a"], Symbol("a"), () => "a"],
  BOOLEAN: ["maybe", "", {}, []],
  COMBO: ["no such choice", {}, [], Number.NaN],
  IMAGE: [5, "a", {}, [], tensor, Tensor.zeros([1, 2, 2, 9]), [[[[1]]]], { samples: tensor }],
  MASK: [5, "a", {}, tensor, Tensor.zeros([1, 1, 1, 1, 1])],
  LATENT: [5, "a", [], {}, { samples: 5 }, { samples: tensor }, Tensor.zeros([1, 4, 2, 2])],
  CONDITIONING: [5, "a", {}, [5], [[5, {}]], [[tensor]], [[tensor, 5]]],
  PIPE_LINE: [5, "a", [], { loader_settings: 5 }, { loader_settings: [] }, tensor],
  MODEL: [5, "a", {}, { sampling: 5 }, { sampling: { sigmas: [1] } }, []],
  VAE: [5, "a", {}, { encode: 5 }, []],
  CLIP: [5, "a", {}, { encoders: 5 }, { encoders: [] }],
  SAMPLER: [
    5,
    "a",
    "euler",
    {},
    [],
    { sampler: "euler" },
    { sampler: "none", options: {} },
    { sampler: "euler", options: [] },
  ],
  SIGMAS: [5, "a", {}, [-1], [Number.NaN], ["a"], [1e39], [[1]], Tensor.zeros([1, 1]), Tensor.from([1, -1], [2])],
  NOISE: [5, "a", {}, [], { seed: 5, enabled: true }, { seed: 5n }, { seed: -1n, enabled: true }],
  GUIDER: [5, "a", {}, [], { kind: "cfg" }, { kind: "none", model: {} }, { kind: "basic", model: {}, positive: [] }],
  CONTROL_NET: [5, "a", [], tensor],
  UPSCALE_MODEL: [5, {}, { scale: 2 }, { scale: 1.5, upscale: () => tensor }, { scale: 1e9, upscale: () => tensor }],
  CLIP_VISION: [5, "a", {}, { encode: 5 }, []],
  CLIP_VISION_OUTPUT: [5, "a", [], tensor],
  IPADAPTER: [5, "a", {}, { embed: () => tensor }, []],
  INSIGHTFACE: [],
  EMBEDS: [5, "a", {}, [], Tensor.zeros([2]), Tensor.zeros([0, 4])],
  STYLE_MODEL: [5, "a", {}, { tokens: 5 }, []],
  GLIGEN: [5, "a", [], tensor],
  MODEL_PATCH: [5, "a", [], tensor],
  LIST: [[5], [null], [{}], 5],
  "*": [],
};

function badValues(spec: Spec): Bad[] {
  const { type, optional, choices } = spec;
  const { min, max } = spec.options;
  const bad: Bad[] = [];
  if (!optional && spec.options.default === undefined)
    bad.push({ what: "missing", value: undefined, code: "input.missing" });
  if (!optional && type !== "*") bad.push({ what: "null", value: null, code: "input.missing" });
  // a choice that this host has no list for takes any text
  const isOpen = typeof choices === "function" && choices({ host: createPreviewHost() }) === undefined;
  const wrong = type === "COMBO" && !isOpen ? "input.not-in-list" : "input.wrong-type";
  const values = WRONG[type] ?? assert.fail(`no wrong values of type ${type}`);
  for (const value of isOpen ? values.filter((value) => typeof value !== "string") : values) {
    bad.push({ what: `wrong type ${describe(value)}`, value, code: wrong });
  }
  if (type === "INT" || type === "FLOAT") {
    const below = (by: number) => (typeof min === "bigint" ? min - BigInt(by) : Number(min) - by);
    const above = (by: number) => (typeof max === "bigint" ? max + BigInt(by) : Number(max) + by);
    if (min !== undefined) bad.push({ what: "below its minimum", value: below(1), code: "input.below-minimum" });
    if (max !== undefined) bad.push({ what: "above its maximum", value: above(1), code: "input.above-maximum" });
    if (max !== undefined) bad.push({ what: "above as text", value: String(above(7)), code: "input.above-maximum" });
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      bad.push({ what: String(value), value, code: "input.(not-finite|above-maximum|below-minimum)" });
    }
  }
  return bad;
}

function describe(value: unknown): string {
  if (value instanceof Tensor) return `tensor [${value.shape.join()}]`;
  const digits = (_: string, inner: unknown) => (typeof inner === "bigint" ? `${inner}n` : inner);
  return typeof value === "object" ? JSON.stringify(value, digits) : String(value);
}

globalThis.describe("every input of every node, out of bounds, of the wrong type, missing and NaN", () => {
  const folder = temporaryFolder();

  for (const key of registry.keys()) {
    globalThis.describe(key, () => {
      for (const [name, spec] of Object.entries(registry.get(key)!.inputs)) {
        it(name, async () => {
          for (const { what, value, code } of badValues(spec)) {
            // if a node takes lists, a list would be several values
            const isItem = registry.get(key)!.inputIsList && value !== undefined && value !== null;
            const inputs = { ...goodInputs(key), [name]: isItem ? [value] : value };
            if (value === undefined) delete inputs[name];
            const options = { outputDir: join(folder(), "out"), inputDir: join(folder(), "in") };
            const error = await invokeNode(key, inputs, options).then(
              () => assert.fail(`${what}: no error`),
              (caught: unknown) => caught,
            );
            assert.ok(error instanceof LatentkitError, `${what}: ${String(error)}`);
            assert.match(error.code, new RegExp(`^${code}$`), `${what}: ${error.message}`);
            assert.equal(error.details.node, key, what);
            assert.equal(error.details.input, name, what);
            assert.ok(error.message.startsWith(`${key}, input "${name}": expected `), error.message);
            assert.ok(error.details.expected && error.details.received, what);
            assert.ok(error.message.includes(error.details.expected) && error.message.includes(error.details.received));
            assert.deepEqual(tree(folder()), [], `${what}: something was written`);
          }
        });
      }
    });
  }
});
