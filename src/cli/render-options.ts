import { relative } from "node:path";
import { LatentkitError } from "../base/errors.js";
import { loadConfig } from "../render/config/load-config.js";
import { METADATA_POLICIES, type MetadataPolicy } from "../render/job.js";
import { type DeviceChoice, parseDevice } from "../tensor/device/choice.js";
import { type Arguments, idList, pair } from "./command.js";
import { hostLine, loadsModels, modelsOf, openHost } from "./host.js";
import { oneLine, type Terminal } from "./terminal.js";

/** Options of a run that the command line holds, whether of one graph or of a batch. */
export async function renderOptions(args: Arguments, terminal: Terminal) {
  const config = loadConfig({
    file: args.value("config"),
    flags: {
      output_dir: args.value("out"),
      device: deviceOf(args),
      allow_network: networkOf(args),
      models: modelsOf(args),
    },
    env: terminal.env,
  });
  const isQuiet = args.flag("quiet") || args.flag("json");
  const host = await openHost(config.models, terminal, isQuiet);
  if (!isQuiet && loadsModels(args.positionals[0]!)) terminal.err(hostLine(host));
  return {
    host,
    set: Object.fromEntries(args.values("set").map((text) => pair("set", text))),
    targets: idList(args.value("targets")),
    outputDir: config.output_dir,
    device: config.device,
    inputDir: args.value("input"),
    metadata: policy(args.value("metadata")),
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
