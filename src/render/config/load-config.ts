import { dirname, resolve } from "node:path";
import { YAMLParseError } from "yaml";
import { z } from "zod";
import { LatentkitError } from "../../base/errors.js";
import { suggest } from "../../base/suggest.js";
import { decodeText, readRegularSync } from "../../io/regular-file.js";
import { readYaml } from "../../io/yaml.js";
import { type Config, configFault, configLeaves, parseConfig } from "./config.js";

const MAX_FILE_BYTES = 1024 * 1024;
const PREFIX = "LATENTKIT_";
// Relative paths in a file start at the file's folder, those of flags and environment at the working folder.
// A LATENTKIT_ variable that sets nothing is a warning: another version or program may know it.
/** Variables that set no key, with their meaning: for the native core, its loader, the CUDA backend, the command line. */
export const OTHER_VARIABLES: Readonly<Record<string, string>> = {
  LATENTKIT_ISA: "Instruction set of the native core: avx512, avx2 or baseline; the best of this processor if absent.",
  LATENTKIT_THREADS: "Threads of the native core; one for each processor if absent.",
  LATENTKIT_NATIVE: "Another native core: the path of a latentkit.node.",
  LATENTKIT_UPDATE_SNAPSHOTS: "1 writes the snapshots of `latentkit/testing` that differ.",
  LATENTKIT_DEBUG: "1 adds stack traces to errors of the command line.",
  LATENTKIT_CUDA: "Another CUDA library: the path of a latentkit_cuda.so.",
  LATENTKIT_CUDA_DRIVER: "Another CUDA driver: the path of a libcuda.",
  LATENTKIT_CACHE_DIR:
    "Folder of the verdicts of GPU trials, for CUDA and for networks, of the hashes of models, and of quantised weights while they are loaded, instead of ~/.cache/latentkit.",
};

type Tree = { [key: string]: unknown };

/**
 * The configuration in force: flags over environment (`LATENTKIT_OUTPUT_DIR`, `LATENTKIT_LIMITS_RUNNING` …) over
 * the file (YAML or JSON) over the defaults. Relative paths of the file start at its folder, all others at `cwd`.
 */
export function loadConfig(options: {
  file?: string;
  flags?: Partial<Omit<Config, "limits">> & { limits?: Partial<Config["limits"]> };
  env?: Readonly<Record<string, string | undefined>>;
  cwd?: string;
}): Config {
  const cwd = options.cwd ?? process.cwd();
  const file = options.file === undefined ? undefined : resolve(cwd, options.file);
  const written = file === undefined ? {} : readConfigFile(file);
  // each source alone first, so that a complaint names the right one
  if (file !== undefined) parseConfig(written, options.file!);
  const fromFile = absolutePaths(written, file === undefined ? cwd : dirname(file));
  const env = options.env ?? process.env;
  const fromEnv = absolutePaths(readEnvironment(env), cwd);
  const flags = absolutePaths((options.flags ?? {}) as Tree, cwd);
  parseConfig(flags, "command line");
  const config = parseConfig(merge(merge(fromFile, fromEnv), flags), "configuration");
  return absolutePaths(config, cwd) as Config;
}

function readConfigFile(file: string): Tree {
  let bytes: Buffer | undefined;
  try {
    bytes = readRegularSync(file, MAX_FILE_BYTES);
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? "unreadable";
    const fault = why === "ENOENT" ? "does not exist" : `cannot be read (${why})`;
    throw new LatentkitError("config.invalid", `Configuration file ${file} ${fault}.`, {}, { cause: error });
  }
  if (bytes === undefined) {
    throw new LatentkitError("config.invalid", `Configuration file ${file}: expected at most 1 MiB.`);
  }
  const text = decodeText(bytes);
  if (text === undefined) {
    const expected = "expected text in UTF-8 or UTF-16, received other bytes";
    throw new LatentkitError("config.invalid", `Configuration file ${file}: ${expected}.`);
  }
  let value: unknown;
  try {
    // YAML 1.2 contains JSON
    value = readYaml(text, { maxAliasCount: 50, prettyErrors: true });
  } catch (error) {
    throw new LatentkitError("config.invalid", `${file}${yamlFault(error)}.`, {}, { cause: error });
  }
  if (value === null || value === undefined) return {};
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new LatentkitError("config.invalid", `${file}: expected an object, such as "port: 8188".`);
  }
  return value as Tree;
}

/** LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN sets channels.web.hooks_token; an empty variable counts as absent. */
function readEnvironment(env: Readonly<Record<string, string | undefined>>): Tree {
  let tree: Tree = {};
  for (const [path, type] of configLeaves()) {
    const name = variableOf(path);
    const text = env[name];
    if (text === undefined || text === "") continue;
    const value = readVariable(path, text, type);
    tree = merge(tree, path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Tree);
  }
  return tree;
}

/** The environment variable that sets a key. */
export const variableOf = (path: readonly string[]) => `${PREFIX}${path.join("_").toUpperCase()}`;

/**
 * A sentence for each `LATENTKIT_…` variable that sets nothing. They are not refused: a later version or another
 * program may know them.
 */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const variables = [...configLeaves().map(([path]) => variableOf(path)), ...Object.keys(OTHER_VARIABLES)];
  const names = variables.map((name) => name.slice(PREFIX.length));
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && env[name] !== "" && !variables.includes(name))
    .map((name) => {
      const own = name.slice(PREFIX.length);
      const longer = names.find((other) => other.endsWith(`_${own}`));
      const { hint } = suggest(longer ?? own, names, (near) => `${PREFIX}${near}`);
      return `Environment variable ${name} sets nothing.${hint}`;
    });
}

function readVariable(path: readonly string[], text: string, type: z.core.$ZodType): unknown {
  if (z.safeParse(type, text).success) return text;
  let value: unknown;
  try {
    value = readYaml(text, { maxAliasCount: 0 });
  } catch {
    value = text;
  }
  const checked = z.safeParse(type, value);
  if (checked.success) return value;
  // a list of one text, such as a folder of models
  if (z.safeParse(type, [text]).success) return [text];
  const fault = configFault(checked.error, { value, at: path, frame: (full) => full.slice(path.length) });
  throw new LatentkitError("config.invalid", `Environment variable ${variableOf(path)}: ${fault}`);
}

function merge(low: Tree, high: Tree): Tree {
  const merged = { ...low };
  for (const [key, value] of Object.entries(high)) {
    if (value === undefined) continue;
    merged[key] = isTree(value) && isTree(merged[key]) ? merge(merged[key], value) : value;
  }
  return merged;
}

const isTree = (value: unknown): value is Tree => value !== null && typeof value === "object" && !Array.isArray(value);

const mapValues = (tree: Tree, map: (value: unknown) => unknown): Tree =>
  Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, map(value)]));

function absolutePaths(tree: Tree, folder: string): Tree {
  const resolved: Tree = { ...tree };
  const absolute = (value: unknown) => (typeof value === "string" ? resolve(folder, value) : value);
  resolved.output_dir = absolute(resolved.output_dir);
  if (Array.isArray(resolved.models)) resolved.models = resolved.models.map(absolute);
  if (isTree(resolved.agent)) {
    const { graphs } = resolved.agent;
    resolved.agent = mapValues(resolved.agent, absolute);
    if (isTree(graphs)) (resolved.agent as Tree).graphs = mapValues(graphs, absolute);
  }
  if (typeof resolved.store === "string" && resolved.store.startsWith("sqlite:")) {
    resolved.store = `sqlite:${resolve(folder, resolved.store.slice("sqlite:".length))}`;
  }
  return resolved;
}

/** The faults of YAML that people write, by the package's codes for them. */
const FAULTS: Readonly<Record<string, string>> = {
  BAD_ALIAS: "a text begins with * or &, which means an alias: put it in quotes",
  BAD_DQ_ESCAPE: "a text in double quotes has a wrong escape: put it in single quotes",
  BAD_INDENT: "the indentation matches no line above",
  BAD_SCALAR_START: "a text starts with a character that YAML reserves: put it in quotes",
  BLOCK_AS_IMPLICIT_KEY: "a line has two keys, or a text with a colon: put the text in quotes",
  DUPLICATE_KEY: "the key appears twice",
  MISSING_CHAR: "a quote, a bracket, a comma or the space after a colon is missing",
  MULTILINE_IMPLICIT_KEY: "a key has no colon and space after it, or its text has no quotes",
  MULTIPLE_DOCS: "a second document starts here; expected one",
  TAB_AS_INDENT: "the line is indented with a tab: use spaces",
  TAG_RESOLVE_FAILED: "a text begins with !, which means a tag: put it in quotes",
};

/** Where and why a file is not YAML, as the end of a sentence about it. The file is not quoted: it may hold a token. */
function yamlFault(error: unknown): string {
  if (error instanceof YAMLParseError) {
    const where = error.linePos === undefined ? "" : ` line ${error.linePos[0].line}`;
    // the package reports a list or object that is never closed as wrong indentation
    const code =
      error.code === "BAD_INDENT" && /and end with a [\]}]/.test(error.message) ? "MISSING_CHAR" : error.code;
    return `${where}: ${FAULTS[code] ?? "expected YAML or JSON, received another text"}`;
  }
  const { message } = error as Error;
  // the package throws its own kind of error only for aliases
  return message.startsWith("expected ") ? `: ${message}` : `: ${FAULTS.BAD_ALIAS}`;
}
