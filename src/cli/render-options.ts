import { LatentkitError } from "../base/errors.js";
import { suggest } from "../base/suggest.js";
import { type Job, METADATA_POLICIES, type MetadataPolicy } from "../graph/job.js";
import { type ClassAliases, findDefinition, parseGraph } from "../graph/parse.js";
import { neededBy } from "../graph/topology.js";
import { writeFailed } from "../io/files/write-file.js";
import { FORMAT, PICTURE_TYPES, type PictureFormat } from "../io/pictures/format.js";
import { loadConfig } from "../render/config/load-config.js";
import { createGraphKeys } from "../render/items/graph-keys.js";
import { isRandom, isRandomSeed, randomSeed } from "../render/items/seeds.js";
import { type GraphSource, readGraph } from "../render/source.js";
import { defaultRegistry, loadsModels } from "../render/surroundings.js";
import { deviceFlags, hostLine, modelsIn, openHost } from "./host.js";
import { tryFolder } from "./output-folder.js";
import type { ArgumentsOf } from "./table/commands.js";
import { wordOf } from "./table/option.js";
import { oneLine, shortest, type Terminal } from "./terminal.js";

type RenderArguments = ArgumentsOf<"render">;

/** The graph of a command line, and the options of its one run. */
export async function renderOptions(args: RenderArguments, terminal: Terminal, signal: AbortSignal) {
  const { source, models, isQuiet, isNeeded, options } = readOptions(args, terminal);
  if (writesFiles(source, options)) await requireWritable(options.outputDir);
  const set = drawSeeds(source, options, args.get("quiet") ? () => {} : terminal.err);
  const host = await openHost(models, terminal, { isQuiet, isNeeded, signal });
  return { source, options: { ...options, set, signal, host } };
}

/** Whether a node that may run writes files. */
function writesFiles(
  { graph }: GraphSource,
  { targets, classAliases }: Pick<Job, "targets" | "classAliases">,
): boolean {
  const parsed = parseGraph(graph, { classAliases });
  const ids = targets === undefined ? parsed.ids : [...neededBy(parsed, targets)];
  return ids.some((id) => {
    const { class_type: type } = parsed.prompt[id] as { class_type?: unknown };
    return findDefinition(parsed, String(type), defaultRegistry)?.writesFiles === true;
  });
}

/** Fails with file.write-failed before a long run whose files the folder would not take. */
async function requireWritable(folder: string): Promise<void> {
  const { error } = await tryFolder(folder);
  if (error !== undefined) throw writeFailed(shortest(folder), error);
}

/** Values of --set with seeds in place of "random", which are reported. */
function drawSeeds(
  { graph }: GraphSource,
  { set, classAliases }: { readonly set: Readonly<Record<string, string>>; readonly classAliases: ClassAliases },
  tell: (text: string) => void,
): Readonly<Record<string, string>> {
  if (!Object.values(set).some(isRandom)) return set;
  const keys = createGraphKeys(graph, { classAliases });
  const drawn = Object.entries(set).map(([key, value]) => {
    if (!isRandomSeed(keys, key, value)) return [key, value] as const;
    const seed = String(randomSeed());
    tell(`${oneLine(key)} = ${seed}\n`);
    return [key, seed] as const;
  });
  return Object.fromEntries(drawn);
}

/** The graph and the options of a batch, and the configuration with the store whose workers render, if they do. */
export function batchRequest(args: RenderArguments, terminal: Terminal) {
  const { source, config, models, isQuiet, options } = readOptions(args, terminal);
  // decisions: Only --store distributes a batch
  const store = args.has("store") ? config : undefined;
  return { source, store, options: { ...options, ...modelsIn(models, terminal, isQuiet) } };
}

export type BatchRequest = ReturnType<typeof batchRequest>;

/** Reads the configuration and the graph, once each, and says which host renders. */
function readOptions(args: RenderArguments, terminal: Terminal) {
  const config = loadConfig({
    file: args.get("config"),
    flags: {
      output_dir: args.get("out"),
      // without a value, the configuration's own is meant
      store: args.get("store") || undefined,
      ...deviceFlags(args),
    },
    env: terminal.env,
  });
  const options = {
    set: args.get("set"),
    targets: args.get("targets"),
    outputDir: config.output_dir,
    device: config.device,
    inputDir: args.get("input"),
    metadata: policyOf(args.get("metadata")),
    format: formatOf(args, config.format),
    parameters: config.parameters || args.get("parameters"),
    redact: args.get("redact"),
    classAliases: args.get("alias"),
    partial: args.get("partial"),
    allowNetwork: config.allow_network,
    config: { remote_image_api: config.remote_image_api },
  };
  const source = readGraph(args.get("GRAPH"), options);
  const isQuiet = args.get("quiet") || args.get("json");
  const isShared = args.has("store");
  const folders = isShared ? [] : config.models;
  const isNeeded = !isShared && loadsModels(parseGraph(source.graph).prompt, defaultRegistry);
  if (isNeeded && !isQuiet) terminal.err(hostLine(folders.length > 0));
  const models = { folders, device: config.models_device, memory: config.models_memory };
  return { source, config, models, isQuiet, isNeeded, options };
}

const policyOf = (text: string | undefined): MetadataPolicy | undefined =>
  text === undefined ? undefined : wordOf(METADATA_POLICIES, text, "--metadata");

/** The format of --format, --quality, --lossless and --bits: of the configuration if the first one is absent. */
function formatOf(args: RenderArguments, configured: PictureFormat | undefined): PictureFormat | undefined {
  const type = args.get("format");
  const [quality, bits] = [args.get("quality"), args.get("bits")];
  const own = {
    ...(type !== undefined && { type }),
    ...(quality !== undefined && { quality }),
    ...(args.get("lossless") && { lossless: true }),
    ...(bits !== undefined && { bitDepth: bits }),
  };
  if (Object.keys(own).length === 0) return configured;
  const format: unknown = type === undefined ? { ...configured, ...own } : own;
  if (FORMAT[1](format)) return format as PictureFormat;
  const received = (["format", "quality", "lossless", "bits"] as const)
    .filter((name) => args.has(name))
    .map((name) => `--${name}${name === "lossless" ? "" : ` ${args.get(name)}`}`);
  const isType = PICTURE_TYPES.some((known) => known === type);
  const { suggestion, hint } = suggest(isType ? undefined : type, PICTURE_TYPES);
  throw new LatentkitError(
    "usage.invalid",
    `--format: expected png with --bits 8 or 16, webp or avif with --quality 1 to 100 or --lossless, or jpeg with --quality 1 to 100, received ${received.join(" ")}.${hint}`,
    { suggestion },
  );
}
