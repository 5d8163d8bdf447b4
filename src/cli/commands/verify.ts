import { LatentkitError } from "../../base/errors.js";
import { printJson } from "../../io/json/print.js";
import { isOwnPage } from "../../render/contact-sheet/own-pages.js";
import { type Verdict, type VerifyOptions, verifyImage } from "../../render/verify/verify.js";
import { chooseDevice } from "../../tensor/device/choice.js";
import { type Arguments, type Command, pair } from "../command.js";
import { modelsNamed, networkHelp, networkOptions, openHost } from "../host.js";
import { namesMany, picturePaths } from "../picture-paths.js";
import { namingFile, readImage } from "../read-image.js";
import { deviceOf } from "../render-options.js";
import { harmless, oneLine, red, type Terminal } from "../terminal.js";

/** A verdict, or why a file is no picture. */
type Outcome = Verdict | { readonly status: "unreadable"; readonly error: LatentkitError };
type Counts = Record<Outcome["status"], number>;

export const verifyCommand: Command = {
  usage: "verify IMAGE…",
  summary: "Render pictures again from the graphs in them and compare the pixels.",
  help: [
    "  --input DIR       folder of the input images (./input)",
    "  --models DIR      ComfyUI's models folder, or an extra_model_paths.yaml; repeatable",
    ...networkHelp(20),
    "  --device DEVICE   device for tensors: auto, cpu or cuda:N (auto)",
    "  --offline         accepted, without effect: verify never uses the network",
    "  --alias OLD=NEW   run nodes of class OLD (or of prefix OLD) as NEW; repeatable",
    "  --json            print one JSON object a line for each picture; of several, the counts last",
    "",
    "Each IMAGE is a picture, or a folder whose pictures are meant, with those of the folders below it.",
    "PNG files, and WebP and AVIF files saved with --lossless, can be verified.",
    "A picture that models painted takes --models. Its pixels may be equal or close: at most 4 of 255 off.",
    "Exit code 0: all verified, 1: one is different, 2: none is different, but one has no receipt, holds no graph that",
    "can be rendered again, or cannot be read.",
  ],
  options: {
    input: { type: "string" },
    ...networkOptions,
    device: { type: "string" },
    offline: { type: "boolean" },
    alias: { type: "string", multiple: true },
    json: { type: "boolean" },
  },
  positionals: { min: 1, max: Number.POSITIVE_INFINITY },
  run: async (args, terminal, signal) => {
    const device = deviceOf(args);
    chooseDevice(device);
    const options: VerifyOptions = {
      inputDir: args.value("input"),
      host: await openHost(modelsNamed(args, terminal), terminal, { signal }),
      device,
      classAliases: Object.fromEntries(args.values("alias").map((text) => pair("alias", text))),
      signal,
    };
    if (!(await namesMany(args))) return verifyOne(args, terminal, options);
    const counts = await verifyMany(args, terminal, options);
    if (args.flag("json")) terminal.out(`${printJson({ type: "result", ...counts })}\n`);
    else terminal.err(`${summary(counts)}\n`);
    return exitCode(counts);
  },
};

async function verifyOne(args: Arguments, terminal: Terminal, options: VerifyOptions): Promise<number> {
  const path = args.positionals[0]!;
  const outcome = await outcomeOf(path, options);
  const { status } = outcome;
  if (args.flag("json") || status === "verified" || status === "different") print(path, outcome, args, terminal);
  else {
    const faults = status === "unreadable" ? [namingFile(outcome.error, path) as Error] : outcome.differences;
    for (const { message } of faults) terminal.err(`${red(terminal, "latentkit:")} ${harmless(message)}\n`);
  }
  return exitCode({ ...NONE, [status]: 1 });
}

const NONE: Counts = { verified: 0, different: 0, unverifiable: 0, unreadable: 0 };

async function verifyMany(args: Arguments, terminal: Terminal, options: VerifyOptions): Promise<Counts> {
  const counts = { ...NONE };
  for await (const { path, isInFolder } of picturePaths(args)) {
    const outcome = await outcomeOf(path, options);
    // a contact sheet or grid is no picture of a graph
    if (isInFolder && outcome.status === "unverifiable" && (await isOwnPage(path))) continue;
    counts[outcome.status]++;
    print(path, outcome, args, terminal);
  }
  return counts;
}

async function outcomeOf(path: string, options: VerifyOptions): Promise<Outcome> {
  try {
    return await verifyImage(await readImage(path), options);
  } catch (error) {
    if (!(error instanceof LatentkitError) || options.signal?.aborted) throw error;
    return { status: "unreadable", error };
  }
}

function print(path: string, outcome: Outcome, args: Arguments, terminal: Terminal): void {
  if (outcome.status === "unreadable") {
    const { status, error } = outcome;
    const line = args.flag("json")
      ? printJson({ path, status, error: { code: error.code, message: error.message } })
      : `${oneLine(path)}: ${status}\n  ${harmless(error.message)}`;
    terminal.out(`${line}\n`);
    return;
  }
  const { status, pixels, differences, remarks, receipt } = outcome;
  if (args.flag("json")) {
    terminal.out(`${printJson({ path, status, pixels, differences, remarks, receipt })}\n`);
    return;
  }
  const match = receipt?.models === undefined || pixels === undefined ? "" : `, its pixels are ${pixels}`;
  terminal.out(`${oneLine(path)}: ${status}${match}\n`);
  for (const { message } of [...differences, ...remarks]) terminal.out(`  ${harmless(message)}\n`);
}

/** "12 verified, 1 different" */
const summary = (counts: Counts): string =>
  Object.entries(counts)
    .filter(([status, count]) => count > 0 || status === "verified")
    .map(([status, count]) => `${count} ${status}`)
    .join(", ");

function exitCode({ different, unverifiable, unreadable }: Counts): number {
  if (different > 0) return 1;
  return unverifiable + unreadable > 0 ? 2 : 0;
}
