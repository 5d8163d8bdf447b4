import { LatentkitError } from "../../base/errors.js";
import { printJson } from "../../io/json/print.js";
import { isOwnPage } from "../../render/contact-sheet/own-pages.js";
import { type Verdict, type VerifyOptions, verifyImage } from "../../render/verify/verify.js";
import { chooseDevice } from "../../tensor/device/device.js";
import { deviceOf, modelsNamed, openHost } from "../host.js";
import { namesMany, namingFile, picturePaths, readImage } from "../picture-arguments.js";
import type { ArgumentsOf, Run } from "../table/commands.js";
import { harmless, oneLine, red, type Terminal } from "../terminal.js";

/** A verdict, or why a file is not a picture. */
type Outcome = Verdict | { readonly status: "unreadable"; readonly error: LatentkitError };
type Counts = Record<Outcome["status"], number>;

export const run: Run<"verify"> = async (args, terminal, signal) => {
  const device = deviceOf(args);
  chooseDevice(device);
  const options: VerifyOptions = {
    inputDir: args.get("input"),
    host: await openHost(modelsNamed(args, terminal), terminal, { signal }),
    device,
    classAliases: args.get("alias"),
    signal,
  };
  if (!(await namesMany(args.get("IMAGE")))) return verifyOne(args, terminal, options);
  const counts = await verifyMany(args, terminal, options);
  if (args.get("json")) terminal.out(`${printJson({ type: "result", ...counts })}\n`);
  else terminal.err(`${summary(counts)}\n`);
  return exitCode(counts);
};

async function verifyOne(args: ArgumentsOf<"verify">, terminal: Terminal, options: VerifyOptions): Promise<number> {
  const path = args.get("IMAGE")[0]!;
  const outcome = await outcomeOf(path, options);
  const { status } = outcome;
  if (args.get("json") || status === "verified" || status === "different") print(path, outcome, args, terminal);
  else {
    const faults = status === "unreadable" ? [namingFile(outcome.error, path)] : outcome.differences;
    for (const { message } of faults) terminal.err(`${red(terminal, "latentkit:")} ${harmless(message)}\n`);
  }
  return exitCode({ ...NONE, [status]: 1 });
}

const NONE: Counts = { verified: 0, different: 0, unverifiable: 0, unreadable: 0 };

async function verifyMany(args: ArgumentsOf<"verify">, terminal: Terminal, options: VerifyOptions): Promise<Counts> {
  const counts = { ...NONE };
  for await (const { path, isInFolder } of picturePaths(args.get("IMAGE"))) {
    const outcome = await outcomeOf(path, options);
    // a contact sheet or grid is not a picture of a graph
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

function print(path: string, outcome: Outcome, args: ArgumentsOf<"verify">, terminal: Terminal): void {
  if (outcome.status === "unreadable") {
    const { status, error } = outcome;
    const line = args.get("json")
      ? printJson({ path, status, error: { code: error.code, message: error.message } })
      : `${oneLine(path)}: ${status}\n  ${harmless(error.message)}`;
    terminal.out(`${line}\n`);
    return;
  }
  const { status, pixels, differences, remarks, receipt } = outcome;
  if (args.get("json")) {
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
