import { relative } from "node:path";
import { LatentkitError } from "../base/errors.js";
import { FORMAT, type PictureFormat } from "../io/pictures/format.js";
import { loadConfig } from "../render/config/load-config.js";
import { createGraphKeys } from "../render/items/graph-keys.js";
import { isRandom, isRandomSeed, randomSeed } from "../render/items/random-seeds.js";
import { METADATA_POLICIES, type MetadataPolicy } from "../render/job.js";
import { readGraph } from "../render/source.js";
import { type DeviceChoice, parseDevice } from "../tensor/device/choice.js";
import { type Arguments, idList, pair, wholeNumber } from "./command.js";
import { graphLoadsModels, hostLine, modelFlags, modelsIn, openHost } from "./host.js";
import { oneLine, type Terminal } from "./terminal.js";

/** Options of a run of one graph that the command line holds. */
export async function renderOptions(args: Arguments, terminal: Terminal, signal: AbortSignal) {
  const { models, isQuiet, ...options } = commonOptions(args, terminal);
  const tell = args.flag("quiet") ? () => {} : terminal.err;
  const set = drawSeeds(args.positionals[0]!, options.set, options.classAliases, tell);
  return { ...options, set, signal, host: await openHost(models, terminal, { isQuiet, signal }) };
}

/** Values of --set with seeds in place of "random", which are told. */
function drawSeeds(
  graph: string,
  set: Readonly<Record<string, string>>,
  classAliases: Readonly<Record<string, string>>,
  tell: (text: string) => void,
): Record<string, string> {
  if (!Object.values(set).some(isRandom)) return set;
  const keys = createGraphKeys(readGraph(graph, { classAliases }).graph, { classAliases });
  const drawn = Object.entries(set).map(([key, value]) => {
    if (!isRandomSeed(keys, key, value)) return [key, value] as const;
    const seed = String(randomSeed());
    tell(`${oneLine(key)} = ${seed}\n`);
    return [key, seed] as const;
  });
  return Object.fromEntries(drawn);
}

/** Options of a batch that the command line holds, but for its items. */
export function batchRenderOptions(args: Arguments, terminal: Terminal) {
  const { models, isQuiet, ...options } = commonOptions(args, terminal);
  return { ...options, ...modelsIn(models, terminal, isQuiet) };
}

function commonOptions(args: Arguments, terminal: Terminal) {
  const config = loadConfig({
    file: args.value("config"),
    flags: {
      output_dir: args.value("out"),
      device: deviceOf(args),
      allow_network: networkOf(args),
      ...modelFlags(args),
    },
    env: terminal.env,
  });
  const isQuiet = args.flag("quiet") || args.flag("json");
  const isShared = args.has("store");
  const folders = isShared ? [] : config.models;
  if (!isQuiet && !isShared && graphLoadsModels(args.positionals[0]!)) terminal.err(hostLine(folders.length > 0));
  return {
    models: { folders, device: config.models_device, memory: config.models_memory },
    isQuiet,
    set: Object.fromEntries(args.values("set").map((text) => pair("set", text))),
    targets: idList(args.value("targets")),
    outputDir: config.output_dir,
    device: config.device,
    inputDir: args.value("input"),
    metadata: policy(args.value("metadata")),
    format: formatOf(args, config.format),
    parameters: config.parameters || args.flag("parameters"),
    redact: args.values("redact"),
    classAliases: Object.fromEntries(args.values("alias").map((text) => pair("alias", text))),
    partial: args.flag("partial"),
    allowNetwork: config.allow_network,
    config: { remote_image_api: config.remote_image_api },
  };
}

/** Value of --device. */
export function deviceOf(args: Arguments): DeviceChoice | undefined {
  const text = args.value("device");
  return text === undefined ? undefined : parseDevice(text, "--device");
}

/** `allow_network` as --offline sets it; undefined without it. */
export const networkOf = (args: Arguments): false | undefined => (args.flag("offline") ? false : undefined);

/** The format of --format, --quality, --lossless and --bits: of the configuration where the first one is absent. */
function formatOf(args: Arguments, configured: PictureFormat | undefined): PictureFormat | undefined {
  const type = args.value("format");
  const bits = wholeNumber(args, "bits", 1);
  const own = {
    ...(type !== undefined && { type }),
    ...(args.has("quality") && { quality: wholeNumber(args, "quality", 1) }),
    ...(args.flag("lossless") && { lossless: true }),
    ...(bits !== undefined && { bitDepth: bits }),
  };
  if (Object.keys(own).length === 0) return configured;
  const format: unknown = type === undefined ? { ...configured, ...own } : own;
  if (FORMAT[1](format)) return format as PictureFormat;
  const received = ["format", "quality", "lossless", "bits"]
    .filter((name) => args.has(name))
    .map((name) => `--${name}${name === "lossless" ? "" : ` ${args.value(name)}`}`);
  throw new LatentkitError(
    "usage.invalid",
    `--format: expected png with --bits 8 or 16, webp or avif with --quality 1 to 100 or --lossless, or jpeg with --quality 1 to 100, received ${received.join(" ")}.`,
  );
}

function policy(text: string | undefined): MetadataPolicy | undefined {
  if (text === undefined || METADATA_POLICIES.includes(text as MetadataPolicy))
    return text as MetadataPolicy | undefined;
  const expected = METADATA_POLICIES.join(", ");
  throw new LatentkitError("usage.invalid", `--metadata: expected ${expected}, received ${JSON.stringify(text)}.`);
}

/** The path as one would type it from here, on one line. */
export function shortest(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return oneLine(fromHere.startsWith("..") ? path : fromHere);
}
