import { LatentkitError } from "../../base/errors.js";
import { RECEIPT_KEY } from "../../io/files/save-images.js";
import { parseJson } from "../../io/json/lossless.js";
import { printJson, printJsonPretty } from "../../io/json/print.js";
import { KIND_NAMES } from "../../io/pictures/kind.js";
import { readStill, type StillImage } from "../../io/pictures/still.js";
import { readReceipt } from "../../render/receipt/read.js";
import type { Receipt } from "../../render/receipt/receipt.js";
import { hasPixels } from "../../render/verify/same-pixels.js";
import type { Command } from "../command.js";
import { readImage } from "../read-image.js";
import { harmless, oneLine } from "../terminal.js";

const COLOURS: Readonly<Record<number, string>> = { 1: "grey", 2: "grey and alpha", 3: "RGB", 4: "RGBA" };

export const inspectCommand: Command = {
  usage: "inspect IMAGE",
  summary: "Show the size, receipt and texts of a picture, including the graph that made it.",
  help: ["  --json   one JSON object"],
  options: { json: { type: "boolean" } },
  positionals: { min: 1, max: 1 },
  run: async (args, terminal) => {
    const path = args.positionals[0]!;
    const image = await readStill(await readImage(path));
    const { width, height, channels, bitDepth, kind } = image;
    const { [RECEIPT_KEY]: written, ...others } = image.text;
    const receipt = written === undefined ? undefined : readReceipt(written);
    // a text that is no valid receipt is printed like any other
    const texts = Object.entries(receipt === undefined ? image.text : others);
    const pixelsMatch = receipt === undefined ? undefined : hasPixels(image, receipt.pixels);
    if (args.flag("json")) {
      const text = Object.fromEntries(Object.entries(image.text).map(([key, value]) => [key, readText(value)]));
      terminal.out(
        `${printJson({ path, format: kind, width, height, channels, bitDepth, text, receipt: receipt && { ...receipt, pixelsMatch } })}\n`,
      );
      return 0;
    }
    terminal.out(`${oneLine(path)}: ${width} x ${height}, ${describeColour(image)}\n`);
    if (receipt !== undefined) terminal.out(harmless(receiptLines(receipt, matchOf(image, pixelsMatch === true))));
    for (const [key, text] of texts) {
      const value = readText(text);
      terminal.out(harmless(`${key}:\n${typeof value === "string" ? value : printJsonPretty(value)}\n`));
    }
    return 0;
  },
};

const describeColour = ({ channels, bitDepth, kind }: StillImage) =>
  `${COLOURS[channels]}, ${bitDepth} bits${kind === "png" ? "" : `, ${KIND_NAMES[kind]}`}`;

/** Whether a receipt's pixels are the file's, in words. */
function matchOf({ loss }: StillImage, isMatch: boolean): string {
  if (isMatch) return "match this file";
  return loss === undefined ? "differ from this file's" : "cannot be checked in a lossy file";
}

function receiptLines(receipt: Receipt, match: string): string {
  const { engine, graph, node, index, pixels, seeds, noise, inputs, host, models = {}, runtime, redacted } = receipt;
  const rows: [string, string][] = [
    ["version", `latentkit ${engine}`],
    ["host", host.preview ? `${host.name} (a stand-in for real models)` : host.name],
    ["saved by", `node ${node}, picture ${index}`],
    ["pixels", `${pixels} (${match})`],
    ["graph", graph],
    ...Object.entries(seeds).map(([key, digits]): [string, string] => ["seed", `${key} = ${digits}`]),
    ...Object.entries(noise).map(([id, stream]): [string, string] => ["noise", `node ${id}: ${stream}`]),
    ...Object.entries(inputs).map(([name, hash]): [string, string] => ["input", `${name} ${hash}`]),
    ...Object.entries(models).map(([name, hash]): [string, string] => ["model", `${name} ${hash}`]),
    ...(runtime === undefined ? [] : runtimeRows(runtime)),
    ...(redacted ?? []).map((key): [string, string] => ["redacted", key]),
  ];
  return `receipt:\n${rows.map(([name, value]) => `    ${name.padEnd(10)}${value}\n`).join("")}`;
}

function runtimeRows({ name, version, provider, threads, plans }: NonNullable<Receipt["runtime"]>): [string, string][] {
  const machine = `${name} ${version} on ${provider}, ${threads} ${threads === 1 ? "thread" : "threads"}`;
  return [
    ["runtime", machine],
    ...Object.entries(plans).map(([network, plan]): [string, string] => ["plan", `${network}: ${plan}`]),
  ];
}

/** Parses JSON texts, keeping every digit; returns any other text as it is. */
function readText(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return parseJson(text, { nonFinite: true });
  } catch (error) {
    if (error instanceof LatentkitError) return text;
    throw error;
  }
}
