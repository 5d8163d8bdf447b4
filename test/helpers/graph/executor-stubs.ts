import { join } from "node:path";
import { parseJson } from "#src/io/json/lossless.js";
import { block, defineNode, type NodeDefinition } from "#src/nodes/define.js";
import type { ComfyInput } from "#src/nodes/inputs.js";
import { createRegistry, type Registry } from "#src/nodes/registry.js";
import { plain } from "#src/nodes/values.js";
import { root } from "../folders.js";
import { goldenText } from "../golden-file.js";

type Inputs = Record<string, unknown>;

/** A call of a node's function, as golden/executor records it. */
export interface Call {
  node: string;
  call: "run" | "check_lazy_status" | "IS_CHANGED";
  args: Inputs;
}

export interface Described {
  input_types: { required?: Inputs; optional?: Inputs; hidden?: Record<string, "PROMPT" | "UNIQUE_ID"> };
  return_types: string[];
  output_node: boolean;
  input_is_list: boolean;
  output_is_list: boolean[] | null;
}

export interface Prompt {
  [id: string]: { class_type: string; inputs: Inputs };
}

export interface ValidateCase {
  id: string;
  kind: "validate";
  prompt: Prompt;
  partial_execution_list: string[] | null;
  valid: boolean;
  error: { type: string; message: string; details_lines_sorted?: string[] } | null;
  good_outputs: string[];
  node_errors: Record<
    string,
    {
      errors: { type: string; message: string; details: string; extra_info: Inputs }[];
      dependent_outputs: string[];
      class_type: string;
    }
  >;
  prompt_after?: Prompt;
}

export interface ExecuteRun {
  prompt: Prompt;
  execute_outputs: string[];
  external_counter?: number;
  success: boolean;
  calls?: (Call & { index: number | null })[];
  run_order: string[];
  events: [string, Inputs][];
  cached_nodes: string[];
  ui_outputs: Record<string, unknown>;
}

export interface ExecuteCase {
  id: string;
  kind: "execute";
  cache: { type: "classic" | "lru" | "dependency_aware"; size?: number | null };
  runs: ExecuteRun[];
}

/** golden/executor with every digit kept, so that a slot 0.0 is none. */
export function executorGolden(): {
  definitions: Record<string, Described>;
  validate: ValidateCase[];
  execute: ExecuteCase[];
} {
  const file = parseJson(goldenText(join(root, "test/golden/executor.json"))) as {
    meta: { node_definitions: Record<string, Described> };
    cases: (ValidateCase | ExecuteCase)[];
  };
  return {
    definitions: file.meta.node_definitions,
    validate: file.cases.filter((entry) => entry.kind === "validate"),
    execute: file.cases.filter((entry) => entry.kind === "execute"),
  };
}

const model = { model: ["MODEL"], positive: ["CONDITIONING"], negative: ["CONDITIONING"], latent_image: ["LATENT"] };
const long = (first: string, n: number) => Array.from({ length: n }, (_, i) => (i === 0 ? first : `${first} ${i}`));
const side = ["INT", { default: 512, min: 16, max: 16384, step: 8 }];
const real = (required: Inputs, returns: string[], isOutput = false): Described => ({
  input_types: { required },
  return_types: returns,
  output_node: isOutput,
  input_is_list: false,
  output_is_list: null,
});

/** The host's own nodes in two of the cases; if their lists are long only the length shows. */
export const REAL_NODES: Record<string, Described> = {
  KSampler: real(
    {
      ...model,
      seed: ["INT", { default: 0, min: 0, max: 18446744073709551615n }],
      steps: ["INT", { default: 20, min: 1, max: 10000 }],
      cfg: ["FLOAT", { default: 8, min: 0, max: 100, step: 0.1, round: 0.01 }],
      sampler_name: [long("euler", 42)],
      scheduler: [long("karras", 9)],
      denoise: ["FLOAT", { default: 1, min: 0, max: 1, step: 0.01 }],
    },
    ["LATENT"],
  ),
  VAEDecode: real({ samples: ["LATENT"], vae: ["VAE"] }, ["IMAGE"]),
  SaveImage: real({ images: ["IMAGE"], filename_prefix: ["STRING", {}] }, [], true),
  EmptyLatentImage: real({ width: side, height: side, batch_size: ["INT", { min: 1, max: 4096 }] }, ["LATENT"]),
  LatentFlip: real({ samples: ["LATENT"], flip_method: [["x-axis: vertically", "y-axis: horizontally"]] }, ["LATENT"]),
  SaveLatent: real({ samples: ["LATENT"], filename_prefix: ["STRING", {}] }, [], true),
};

const number = (value: unknown): number => {
  if (typeof value === "number") return value;
  throw new TypeError(`expected a number, received ${String(value)}`);
};
const range = (start: number, n: number) => Array.from({ length: n }, (_, i) => start + i);
const sum = (list: unknown): number => ((list ?? []) as unknown[]).map(number).reduce((a, b) => a + b, 0);
const isNone = (value: unknown): boolean => value === undefined || value === null;

/** Behaviour of the golden file's stub nodes by class; those of validation cases never run. */
function behaviours(world: StubWorld): Record<string, Partial<NodeDefinition>> {
  return {
    VVal: {
      validate: (inputs) => {
        if (!("i" in inputs)) throw new TypeError("missing argument: i");
        const { i } = inputs;
        if (i === 14) throw new Error("boom");
        return i === 7 ? "seven is bad" : i !== 13;
      },
    },
    VKw: { validate: ({ ...all }) => (all.i === 7 ? "kw seven" : true) },
    VTypes: {
      validate: (_, { inputTypes }) => ["IMAGE", "MASK"].includes(inputTypes.x!) || `bad type ${inputTypes.x}`,
    },
    XConst: { run: ({ value }) => [value] },
    XAdd: { run: ({ a, b }) => [number(a) + number(b)] },
    XTwo: { run: ({ value }) => [value, number(value) * 10] },
    XRange: { run: ({ start, n }) => [range(number(start), number(n))] },
    XMixed: { run: ({ n }) => [range(0, number(n)), n] },
    XSum: { run: ({ a, b }) => [sum(a) + sum(b)] },
    XRev: { run: ({ a }) => [[...(a as unknown[])].reverse()] },
    XOut: {
      run: (inputs) => {
        if (!("x" in inputs)) throw new TypeError("missing argument: x");
        return { ui: { x: [inputs.x ?? null] } };
      },
    },
    XOutR: { run: ({ x }) => ({ ui: { x: [x] }, result: [x] }) },
    XOutL: { run: ({ x }) => ({ ui: { x: x as unknown[] } }) },
    XOpt: { run: ({ a, b }) => [number(a) + number(b ?? 100)] },
    XSwitch: {
      checkLazy: ({ sel }) => [sel ? "a" : "b"],
      run: ({ sel, a, b }) => [sel ? a : b],
    },
    XChain: {
      checkLazy: ({ a, b }) => (isNone(a) ? ["a"] : number(a) > 5 && isNone(b) ? ["b"] : []),
      run: ({ a, b, c }) => [number(a) + number(b ?? 0) + number(c ?? 0)],
    },
    XLazyBad: { checkLazy: () => ["nope"], run: ({ a }) => [a] },
    XLazyAsk: { checkLazy: () => ["a"], run: ({ a }) => [a] },
    XLazyNoMethod: { run: ({ a }) => [a ?? -1] },
    XBlock: { run: ({ value, block: isBlocked }) => [isBlocked ? block() : value] },
    XBlockMsg: { run: () => [block("stop here")] },
    XBlockAll: { run: () => block() as unknown as unknown[] },
    XBlockOdd: { run: ({ value }) => [number(value) % 2 === 1 ? block() : value] },
    XFail: {
      run: ({ value }) => {
        if (number(value) >= 0) throw new Error(`bad ${value}`);
        return [value];
      },
    },
    XNaN: { isChanged: () => Number.NaN, run: ({ value }) => [value] },
    // Python's one NaN object equals itself inside a key
    XNaNSame: { isChanged: () => [Number.NaN], run: ({ value }) => [value] },
    XExt: { isChanged: () => world.counter, run: ({ value }) => [number(value) + world.counter] },
    XIcLink: { isChanged: ({ other }) => isNone(other) || other, run: ({ value }) => [value] },
    XIcRaise: {
      isChanged: () => {
        throw new Error("no");
      },
      run: ({ value }) => [value],
    },
    XNotIdem: { notIdempotent: true, run: ({ value }) => [value] },
    XUid: { hidden: { uid: "UNIQUE_ID", info: "EXTRA_PNGINFO" }, run: ({ value }) => [value] },
    XCount: {
      run: ({ value }, { state }) => {
        state.n = number(state.n ?? 0) + 1;
        return [number(state.n) * 1000 + number(value)];
      },
    },
    XExpand: {
      run: ({ value }) => ({
        expand: {
          1: { class_type: "XAdd", inputs: { a: value, b: 1 } },
          2: { class_type: "XAdd", inputs: { a: ["1", 0], b: ["1", 0] } },
        },
        result: [["2", 0]],
      }),
    },
    XShort: { run: () => [] },
  };
}

/** State shared by the stub nodes: every call, and the counter that XExt watches. */
export class StubWorld {
  counter = 0;
  calls: Call[] = [];

  /** Nodes of the golden file's definitions that note each call. */
  registry(definitions: Record<string, Described>): Registry {
    const byKey = behaviours(this);
    return createRegistry(
      Object.entries(definitions).map(([key, described]) => this.#define(key, described, byKey[key] ?? {})),
    );
  }

  #define(key: string, described: Described, behaviour: Partial<NodeDefinition>): NodeDefinition {
    const { required = {}, optional = {}, hidden = {} } = described.input_types;
    const inputs: Record<string, ComfyInput> = {};
    for (const [name, spec] of Object.entries(required)) inputs[name] = plain(spec) as ComfyInput;
    for (const [name, spec] of Object.entries(optional)) {
      const [type, options] = plain(spec) as ComfyInput;
      inputs[name] = [type, { ...options, optional: true }];
    }
    const { run = () => [], checkLazy, isChanged, validate, notIdempotent } = behaviour;
    const lazy = Object.keys(inputs).filter((name) => inputs[name]![1]?.lazy === true);
    const asArguments = (inputs: Inputs): Inputs => {
      const args: Inputs = {};
      for (const [name, value] of Object.entries(inputs)) args[name] = value ?? null;
      return args;
    };
    return defineNode({
      key,
      inputs,
      outputs: described.return_types.map((type, i) => ({ name: `out${i}`, type, list: false })),
      outputIsList: described.output_is_list ?? undefined,
      inputIsList: described.input_is_list,
      outputNode: described.output_node,
      hidden: behaviour.hidden ?? hidden,
      notIdempotent,
      validate,
      isChanged:
        isChanged &&
        ((inputs, context) => {
          if (key !== "XNaNSame" && key !== "XIcRaise")
            this.calls.push({ node: "", call: "IS_CHANGED", args: asArguments(inputs) });
          return isChanged(inputs, context);
        }),
      checkLazy:
        checkLazy &&
        ((inputs) => {
          // Python's defaults: an absent lazy input is None
          const args = asArguments(inputs);
          for (const name of lazy) args[name] ??= null;
          this.calls.push({ node: "", call: "check_lazy_status", args });
          return checkLazy(inputs);
        }),
      run: (inputs, context) => {
        this.calls.push({ node: context.nodeId, call: "run", args: asArguments(inputs as Inputs) });
        return run(inputs as Inputs, context);
      },
    });
  }
}
