// Comparison of rendered graphs with committed snapshots, for vitest, jest and mocha.
import "./base/package.js"; // first: in a bundle it throws the sentence that says what to do
import { AssertionError } from "node:assert";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { sha256 } from "./base/bytes.js";
import { describe, LatentkitError } from "./base/errors.js";
import { checkOptions, FLAG, type OptionRules, pickOptions, type Rule, TEXT } from "./base/options.js";
import { JOB_RULES } from "./graph/job.js";
import { SURROUNDINGS_RULES } from "./graph/surroundings.js";
import { renderOutputs, type SnapshotRenderOptions } from "./render/snapshot/outputs.js";
import { checkSnapshot, type SnapshotVerdict, type SnapshotWrites } from "./render/snapshot/snapshot.js";
import { GRAPH } from "./render/source.js";

/** Options of a comparison: those of the render that change its pixels, and how much they may differ. */
export interface MatchRenderOptions extends SnapshotRenderOptions {
  /** Largest difference of a sample that counts as equal, 0 to 255; models of another machine need 4. Default: 0. */
  readonly tolerance?: number;
  /** Name of the snapshot instead of the test's, for a test that compares two graphs. */
  readonly name?: string;
}

/** Options of `expectRender`. */
export interface ExpectRenderOptions extends Omit<MatchRenderOptions, "name"> {
  /** Path of the snapshot without ".json", or its URL: `new URL("__snapshots__/portrait", import.meta.url)`. */
  readonly snapshot: string | URL;
  /** true: writes a snapshot that differs. Default: whether LATENTKIT_UPDATE_SNAPSHOTS is 1. */
  readonly update?: boolean;
}

/** Result of a matcher, as vitest and jest take it. */
export interface MatcherResult {
  readonly pass: boolean;
  readonly message: () => string;
}

/** State of a test that vitest and jest pass to a matcher as `this`. */
export interface MatcherContext {
  readonly testPath?: string;
  readonly currentTestName?: string;
  readonly isNot?: boolean;
  readonly snapshotState?: object;
}

/** Matchers by name, to merge into the runner's own types. */
export interface RenderMatchers<Result = unknown> {
  /** Renders the graph and compares its pixels, texts and files with the test's snapshot. */
  toMatchRender(options?: MatchRenderOptions): Result;
}

const { set, targets, inputDir, classAliases, config, partial, device, setup } = JOB_RULES;
const { registry, host, signal } = SURROUNDINGS_RULES;
const RENDER_RULES: OptionRules<SnapshotRenderOptions> = {
  set,
  targets,
  inputDir,
  classAliases,
  config,
  partial,
  device,
  setup,
  registry,
  host,
  signal,
};
const tolerance: Rule = ["a number from 0 to 255", (value) => typeof value === "number" && value >= 0 && value <= 255];
const RULES: OptionRules<MatchRenderOptions> = { ...RENDER_RULES, tolerance, name: TEXT };

const EXPECT_RULES: OptionRules<ExpectRenderOptions> = {
  ...RENDER_RULES,
  tolerance,
  snapshot: ["a path or a URL", (value) => (typeof value === "string" && value !== "") || value instanceof URL],
  update: FLAG,
};

/**
 * Renders a graph, whatever `render` takes, and compares its pixels, texts and files with a snapshot. A missing one
 * is written, unless CI is set in the environment. Rejects with an AssertionError that names each difference and the
 * picture that shows it, and as `render` does.
 */
export async function expectRender(graph: string | object, options: ExpectRenderOptions): Promise<void> {
  checkOptions("expectRender", options, EXPECT_RULES, ["snapshot"]);
  const { snapshot, update = process.env.LATENTKIT_UPDATE_SNAPSHOTS === "1" } = options;
  const stem = resolve(snapshot instanceof URL ? fileURLToPath(snapshot) : snapshot);
  const verdict = await compare(graph, stem, options, update ? "all" : writesOf());
  if (isMatch(verdict)) return;
  throw new AssertionError({ message: sentenceOf(stem, verdict), stackStartFn: expectRender });
}

/** Matchers for `expect.extend` of vitest and jest; `--update` (`-u`) of the runner writes snapshots. */
export const matchers = {
  /**
   * Renders the graph and compares its pixels, texts and files with the snapshot of the test: a file of `__snapshots__`
   * beside the test's, named after both. To be awaited.
   */
  async toMatchRender(this: MatcherContext, graph: unknown, options: MatchRenderOptions = {}): Promise<MatcherResult> {
    checkOptions("toMatchRender", options, RULES);
    if (!isGraph(graph)) {
      const message = `toMatchRender: expected a graph (${GRAPH[0]}), received ${describe(graph)}.`;
      throw new LatentkitError("usage.invalid", message);
    }
    const stem = stemOf(this, options.name);
    const verdict = await compare(graph, stem, options, this.isNot ? "none" : writesOf(this.snapshotState));
    const pass = isMatch(verdict);
    const message = () =>
      pass ? `The graph was expected to differ from the snapshot ${stem}.json.` : sentenceOf(stem, verdict);
    return { pass, message };
  },
};

const isGraph = (value: unknown): value is string | object => GRAPH[1](value);

async function compare(
  graph: string | object,
  stem: string,
  options: SnapshotRenderOptions & { readonly tolerance?: number },
  write: SnapshotWrites,
): Promise<SnapshotVerdict> {
  const { outputs } = await renderOutputs(graph, pickOptions<SnapshotRenderOptions>(options, RENDER_RULES));
  return checkSnapshot(stem, outputs, { write, tolerance: options.tolerance });
}

const isMatch = ({ status }: SnapshotVerdict): boolean => status !== "different" && status !== "missing";

function sentenceOf(stem: string, { status, differences, pictures }: SnapshotVerdict): string {
  if (status === "missing") {
    return `The snapshot ${stem}.json is missing, and CI does not create it: run the test locally and commit the new file.`;
  }
  const lines = [...differences, ...pictures.map((path) => `see ${path}`)].map((line) => `\n  ${line}`);
  return `The graph differs from the snapshot ${stem}.json:${lines.join("")}`;
}

/** Writes that the runner's own snapshots are set to, which both vitest and jest keep in a private field. */
function writesOf(snapshotState: object = {}): SnapshotWrites {
  const { _updateSnapshot: update } = snapshotState as { _updateSnapshot?: unknown };
  if (update === "all" || process.env.LATENTKIT_UPDATE_SNAPSHOTS === "1") return "all";
  if (update === "new" || update === "none") return update === "new" ? "missing" : "none";
  const { CI = "" } = process.env;
  return CI === "" || CI === "0" || CI === "false" ? "missing" : "none";
}

const MAX_NAME_CHARACTERS = 80;

function stemOf({ testPath, currentTestName = "" }: MatcherContext, name = currentTestName): string {
  if (testPath === undefined || name === "") {
    throw new LatentkitError("usage.invalid", "toMatchRender: expected to be called within a test.");
  }
  const [file] = basename(testPath).split(".");
  return join(dirname(testPath), "__snapshots__", `${file}-${fileName(name)}`);
}

/** Name of a file for a test's name; a hash tells those apart whose letters cannot all be kept. */
function fileName(name: string): string {
  const words = (name.toLowerCase().match(/[a-z0-9]+/g) ?? []).join("-");
  const short = words.slice(0, MAX_NAME_CHARACTERS);
  if (short !== "" && short === words && /^[\x20-\x7e]*$/.test(name)) return short;
  const hash = sha256(name).slice(0, 8);
  return short === "" ? hash : `${short}-${hash}`;
}
