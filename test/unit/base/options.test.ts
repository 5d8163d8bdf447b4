import assert from "node:assert/strict";
import { COUNT, checkOptions, FLAG, type OptionRules, TEXT } from "#src/base/options.js";
import * as api from "#src/index.js";
import * as hooks from "#src/service/hooks/index.js";
import * as service from "#src/service/index.js";
import { refuses } from "../../helpers/errors.js";

type Api = typeof api & typeof hooks & typeof service;
type Callable = (...args: never[]) => unknown;
type FunctionName = { [Name in keyof Api]: Api[Name] extends Callable ? Name : never }[keyof Api];
type Last<Args extends readonly unknown[]> = Required<Args> extends readonly [...unknown[], infer Tail] ? Tail : never;
type OptionsOf<Name extends FunctionName> = Last<Parameters<Api[Name]>>;

/** How a function is called with options alone, and its options: true for one that refuses a symbol and null. */
interface Case<Options> {
  call(options: Options): unknown;
  options: { readonly [Key in keyof Options]-?: true | "takes any value" | "takes null" };
}

type Words<Text extends string> = Text extends `${infer Word} ${infer Rest}` ? Word | Words<Rest> : Text;

/** Options that refuse a symbol and null, by their names. */
const strict = <Text extends string>(...texts: Text[]) =>
  Object.fromEntries(texts.flatMap((text) => text.split(" ").map((name) => [name, true]))) as Record<Words<Text>, true>;

/** Every public function has to be here: with its options, or as one that takes none. */
type Cases = { [Name in FunctionName]: Case<OptionsOf<Name>> | "takes no options" };

const graph = { 1: { class_type: "SolidMask", inputs: { value: 0, width: 8, height: 8 } } };
const pixel = { data: new Uint8Array(3), width: 1, height: 1, channels: 3 };
const cpu = strict("seed source card");
const run = {
  ...strict("registry host targets"),
  partialExecutionTargets: "takes null",
  ...strict("outputDir inputDir files classAliases config partial allowNetwork device previews clock fetch", "signal"),
} as const;
const picture = {
  set: true,
  setup: true,
  metadata: true,
  format: true,
  parameters: true,
  redact: true,
  extraPnginfo: true,
} as const;
const shared = strict("cache diskCache outputHandling onEvent");
const batch = {
  ...run,
  ...picture,
  ...strict("cacheDir concurrency journal resume failFast retry name extraColumns grid total drain models"),
  ...strict("onLoad onDevice"),
} as const;
const agent = async () => ({ response: "" });
/** Marks functions whose arguments are not options. */
const INPUT = "takes no options";

async function drained(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

const CASES: Cases = {
  render: {
    call: (options) => api.render(graph, options),
    options: { ...run, ...picture, ...shared, ...strict("passing cacheDir output") },
  },
  createRenderer: {
    call: (options) => api.createRenderer(options).close(),
    options: {
      ...picture,
      ...strict("targets outputDir inputDir files classAliases config"),
      partialExecutionTargets: "takes null",
      ...strict(
        "partial allowNetwork device previews cacheDir output threads cacheBytes resourceLimits graceMs",
        "models",
      ),
    },
  },
  batch: { call: (options) => drained(api.batch(graph, [], options)), options: batch },
  checkBatch: { call: (options) => api.checkBatch(graph, [], options), options: batch },
  executeGraph: {
    call: (options) => drained(api.executeGraph(graph, options)),
    options: { ...run, ...shared, ...strict("validate runId"), extraPnginfo: "takes any value" },
  },
  validateGraph: {
    call: (options) => api.validateGraph(graph, options),
    options: {
      ...strict("registry host inputDir files classAliases targets allowNetwork"),
      partialExecutionTargets: "takes null",
    },
  },
  convertWorkflow: {
    call: (options) => api.convertWorkflow({ nodes: [{ id: 1, type: "A" }], links: [] }, options),
    options: { registry: true, classAliases: true, clock: true, onWarning: true },
  },
  graphSchema: {
    call: (options) => api.graphSchema(graph, options),
    options: { registry: true, host: true, inputDir: true, classAliases: true, named: true },
  },
  invokeNode: {
    call: (options) => api.invokeNode("SolidMask", { value: 0, width: 8, height: 8 }, options),
    options: strict("hidden host outputDir inputDir files registry signal clock fetch config device log"),
  },
  defineNode: {
    call: (source) => api.defineNode({ key: "a", inputs: {}, outputs: {}, run: () => ({}), ...(source as object) }),
    options: strict(
      "key displayName category description deprecated inputs outputs hidden inputIsList outputIsList",
      "outputNode writesFiles hasUi notIdempotent reachesNetwork usesKey cacheVersion validate",
      "isChanged checkLazy noiseStream run",
    ),
  },
  randn: {
    call: (options) => api.randn([2], { seed: 1, source: "GPU", ...(options as object) }),
    options: { ...cpu, batchIndex: true, out: true },
  },
  createGenerator: {
    call: (options) => api.createGenerator({ seed: 1, source: "GPU", ...(options as object) }),
    options: cpu,
  },
  sigmas: {
    call: (options) => api.sigmas({ scheduler: "karras", steps: 3, ...(options as object) }),
    options: { model: true, sampler: true, scheduler: true, steps: true, denoise: true },
  },
  modelSampling: {
    call: (overrides) => {
      const isDiscrete = Object.keys(overrides).some((key) => /^(linear|zsnr)/.test(key));
      const isEdm = Object.keys(overrides).some((key) => /^sigma/.test(key));
      return api.modelSampling(isDiscrete ? "sd15" : isEdm ? "svd" : "sd3", overrides);
    },
    options: strict("shift multiplier sigmaMin sigmaMax linearStart linearEnd zsnr"),
  },
  encodePng: { call: (options) => api.encodePng(pixel, options), options: { level: true, text: true, bitDepth: true } },
  createCache: { call: (options) => api.createCache(options), options: { policy: true, size: true } },
  createDiskCache: {
    call: (options) => api.createDiskCache({ folder: "never-made", ...(options as object) }),
    options: { folder: true, bytes: true, minMs: true, engine: true, now: true },
  },
  createPreviewHost: { call: (options) => api.createPreviewHost(options), options: { checkpoints: true } },
  encodePrompt: {
    call: async (options) => {
      const { clip } = await api.createPreviewHost().loadCheckpoint("preview-sd15.safetensors");
      return api.encodePrompt(clip, "a fox", options);
    },
    options: strict("tokenNormalization warn weightInterpretation wMax applyToPooled a1111PromptStyle steps"),
  },
  tokenizePrompt: {
    call: async (options) => {
      const { clip } = await api.createPreviewHost().loadCheckpoint("preview-sd15.safetensors");
      return api.tokenizePrompt("a fox", clip.encoders[0]!, options);
    },
    options: { tokenNormalization: true, warn: true },
  },
  createGraphAgent: {
    call: (options) => hooks.createGraphAgent({ graph, outputDir: "never-made", ...(options as object) }).close(),
    options: {
      ...strict("graph graphs models host registry outputDir inputDir config device classAliases metadata redact"),
      ...strict("threads setup cacheBytes resourceLimits graceMs partial previews allowNetwork targets"),
      ...strict("extraPnginfo format parameters files"),
      cacheDir: true,
    },
  },
  createHookService: {
    call: (options) => hooks.createHookService({ agent, config: {}, ...(options as object) }),
    options: strict("agent batchAgent store files config logger clock workers"),
  },
  createS3Files: {
    call: (options) => {
      const credentials = { accessKeyId: "a", secretAccessKey: "b" };
      return hooks.createS3Files({ url: "s3://bucket", credentials, ...(options as object) });
    },
    options: { url: true, credentials: true, scratch: true, pauseMs: true },
  },
  createSqliteStore: { call: (options) => hooks.createSqliteStore(":memory:", options), options: { driver: true } },
  createServer: {
    call: (options) =>
      service.createServer({ hooks: hooks.createHookService({ agent, config: {}, logger }), ...(options as object) }),
    options: { hooks: true, host: true, port: true, limits: true, logger: true },
  },
  startService: { call: (options) => service.startService({}, options), options: { log: true } },
  createLogger: { call: (options) => service.createLogger(options), options: { level: true, destination: true } },
  tracedAgent: INPUT,
  parseGraphText: INPUT,
  printGraphText: INPUT,
  createMemoryStore: INPUT,
  createRegistry: INPUT,
  decodePng: INPUT,
  parsePrompt: INPUT,
  picturesIn: INPUT,
  device: INPUT,
  block: INPUT,
  // the second argument of these describes the input to ComfyUI's clients, which have keys of their own
  any: INPUT,
  boolean: INPUT,
  choice: INPUT,
  clip: INPUT,
  conditioning: INPUT,
  float: INPUT,
  image: INPUT,
  int: INPUT,
  latent: INPUT,
  list: INPUT,
  mask: INPUT,
  model: INPUT,
  pipe: INPUT,
  seed: INPUT,
  socket: INPUT,
  text: INPUT,
  vae: INPUT,
};

const logger = service.createLogger({ level: "silent" });

interface AnyCase {
  call(options: unknown): unknown;
  readonly options: Readonly<Record<string, true | "takes any value" | "takes null">>;
}

const WITH_OPTIONS = Object.entries(CASES).filter((entry) => entry[1] !== INPUT) as unknown as [string, AnyCase][];
const CODES = ["usage.invalid", "value.invalid", "value.out-of-range", "tensor.bad-shape", "config.invalid"];

async function refusalOf(call: () => unknown): Promise<api.LatentkitError> {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof api.LatentkitError, `a raw error: ${error instanceof Error ? error.stack : error}`);
    assert.ok(CODES.includes(error.code), `${error.code}: ${error.message}`);
    assert.match(error.message, /^[^\n]+[.?)]$/);
    return error;
  }
  assert.fail("nothing was refused");
}

describe("options of public functions", () => {
  for (const [name, { call, options }] of WITH_OPTIONS) {
    const keys = Object.keys(options);

    it(`${name} refuses a misspelt option and tells which was meant`, async () => {
      for (const key of keys.filter(({ length }) => length > 2)) {
        const misspelt = `${key}${key.at(-1)}`;
        const error = await refusalOf(() => call({ [misspelt]: "x" }));
        assert.match(error.message, new RegExp(`unknown option "${misspelt}"\\. Did you mean ${key}\\?$`));
        assert.match(error.message, new RegExp(name));
        assert.equal(error.details.suggestion, key);
      }
      assert.match((await refusalOf(() => call({ constructor: 1 }))).message, /unknown option "constructor"\.$/);
    });

    it(`${name} refuses a value of the wrong type and names its option`, async () => {
      for (const [key, what] of Object.entries(options)) {
        if (what === "takes any value") continue;
        for (const value of what === "takes null" ? [Symbol("odd")] : [Symbol("odd"), null]) {
          const { message } = await refusalOf(() => call({ [key]: value }));
          const words = key.replace(/[A-Z]/g, (letter) => `.?${letter}`);
          assert.match(message, new RegExp(words, "i"), `${key}: ${String(value)}`);
        }
      }
    });
  }

  for (const name of ["render", "batch", "executeGraph", "invokeNode", "encodePng", "createCache"] as const) {
    it(`${name} refuses options that are not an object`, async () => {
      for (const value of [null, 5, "x", [], () => {}, new Map([["a", 1]]), new Date()]) {
        const { message } = await refusalOf(() => (CASES[name] as AnyCase).call(value));
        assert.match(message, new RegExp(`^${name}: expected an object of options, received`));
      }
    });
  }

  it("options that callers inside the package alone may use are none", async () => {
    for (const own of ["hasTransientEvents", "runId"]) await refusalOf(() => api.render(graph, { [own]: true }));
    for (const own of "builtIns hasTransientEvents rewritesFiles volatileNodes metadataPrompt passing".split(" ")) {
      await refusalOf(() => drained(api.executeGraph(graph, { [own]: true })));
    }
    for (const own of ["cache", "diskCache", "output", "onEvent", "passing"]) {
      await refusalOf(() => drained(api.batch(graph, [], { [own]: {} })));
    }
  });

  it("defineNode refuses inputs, outputs and hidden inputs that are none", async () => {
    const define = (fields: object) => () =>
      api.defineNode({ key: "a", inputs: {}, outputs: {}, run: () => ({}), ...fields } as never);
    const wrong: [object, RegExp][] = [
      [{ inputs: { count: 5 } }, /^defineNode: a, input "count": expected image\(\), int\(\) or another input/],
      [{ inputs: { count: [5] } }, /input "count": .* received a list of 1\.$/],
      [{ inputs: { count: api.int } }, /input "count": .* received a function\.$/],
      [{ outputs: { MASK: 5 } }, /^defineNode: a, output "MASK": expected the name of a type/],
      [{ outputs: [{ type: "MASK" }] }, /output undefined: /],
      [
        { hidden: { me: "UNIQUE_IDS" } },
        /hidden "me": expected PROMPT, EXTRA_PNGINFO, UNIQUE_ID, received "UNIQUE_IDS"/,
      ],
    ];
    for (const [fields, pattern] of wrong) await refuses(define(fields), "usage.invalid", pattern);
  });

  it("hidden inputs of invokeNode and the session of a heartbeat are not exempt", async () => {
    const hidden = { extra_pnginfos: {} } as object;
    await refuses(
      api.invokeNode("ext poseEditor", { image: "" }, { hidden }),
      "usage.invalid",
      /"extra_pnginfos"\. Did you mean extra_pnginfo\?/,
    );
    const { heartbeat, close } = hooks.createHookService({ agent, config: {}, logger });
    await refuses(heartbeat({ sesionKey: "hook:a" } as object), "usage.invalid", /Did you mean sessionKey\?/);
    await close(0);
  });
});

describe("checkOptions", () => {
  interface Options {
    name: string;
    count?: number;
    isFast?: boolean;
  }
  const rules: OptionRules<Options> = { name: TEXT, count: COUNT, isFast: FLAG };
  const check = (options: unknown) => () => checkOptions<Options>("paint", options, rules, ["name"]);

  it("takes what fits, inherited options and undefined ones", () => {
    check({ name: "a", count: 0, isFast: undefined })();
    check(Object.create({ name: "a" }))();
    check(Object.assign(Object.create(null), { name: "a" }))();
    check({ name: "a", unheardOf: undefined })();
  });

  it("names the option that lacks, with what was expected", async () => {
    for (const options of [{}, { name: undefined }, { count: 1 }]) {
      const { details } = await refuses(
        check(options),
        "usage.invalid",
        /^name: expected a string, received undefined\.$/,
      );
      assert.deepEqual({ ...details }, { expected: "a string", received: "undefined" });
    }
  });

  it("names what a key of another option, or another name for one, means", async () => {
    const asked = async (work: Promise<unknown> | (() => unknown), hint: string) => {
      const { message } = await refuses(work, "usage.invalid");
      assert.ok(message.endsWith(` Did you mean ${hint}?`), message);
    };
    await asked(api.render(graph, { prompt: "a fox" } as object), "set: { prompt: … }");
    await asked(api.render(graph, { outDir: "a" } as object), "outputDir");
    await asked(api.render(graph, { models: "a" } as object), "host: createCheckpointHost({ models: … })");
    await asked(() => api.createRenderer({ out: "a" } as object), "outputDir");
    const { message } = await refuses(check({ name: "a", prompt: "a fox" }), "usage.invalid");
    assert.equal(message, 'paint: unknown option "prompt".');
  });

  it("shows a long or foreign key cut", async () => {
    const { message } = await refuses(check({ name: "a", ["x".repeat(500)]: 1 }), "usage.invalid");
    assert.ok(message.length < 150, message);
  });
});
