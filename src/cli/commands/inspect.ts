import { LatentkitError } from "../../base/errors.js";
import { RECEIPT_KEY } from "../../io/files/save-images.js";
import { isPlainObject, parseJson } from "../../io/json/lossless.js";
import { printJson, printJsonPretty } from "../../io/json/print.js";
import { readStill, type StillImage } from "../../io/pictures/decode.js";
import { KIND_NAMES } from "../../io/pictures/format.js";
import { type Receipt, readReceipt } from "../../render/receipt/receipt.js";
import { pictureSettings, type Settings } from "../../render/receipt/settings.js";
import { hasPixels } from "../../render/verify/same-pixels.js";
import { namesMany, namingFile, picturePaths, readImage } from "../picture-arguments.js";
import type { ArgumentsOf, Run } from "../table/commands.js";
import { harmless, oneLine } from "../terminal.js";

const COLOURS: Readonly<Record<number, string>> = { 1: "grey", 2: "grey and alpha", 3: "RGB", 4: "RGBA" };

export const run: Run<"inspect"> = async (args, terminal, signal) => {
  if (!(await namesMany(args.get("IMAGE")))) {
    const path = args.get("IMAGE")[0]!;
    const picture = await tryPicture(path);
    if (picture instanceof LatentkitError) throw namingFile(picture, path);
    terminal.out(printed(picture, args));
    return 0;
  }
  const counts = { shown: 0, unreadable: 0 };
  for await (const { path } of picturePaths(args.get("IMAGE"))) {
    signal.throwIfAborted();
    const picture = await tryPicture(path);
    if (picture instanceof LatentkitError) {
      counts.unreadable++;
      const { code, message } = picture;
      if (args.get("json")) terminal.out(`${printJson({ path, error: { code, message } })}\n`);
      else terminal.err(`${oneLine(path)}: ${harmless(message)}\n`);
      continue;
    }
    const isNext = counts.shown++ > 0 && !args.get("json");
    terminal.out(`${isNext ? "\n" : ""}${printed(picture, args)}`);
  }
  if (args.get("json")) terminal.out(`${printJson({ type: "result", ...counts })}\n`);
  else terminal.err(`${counts.shown} shown${counts.unreadable > 0 ? `, ${counts.unreadable} unreadable` : ""}\n`);
  return counts.unreadable > 0 ? 2 : 0;
};

/** A picture's file, and what its texts say of it. */
interface Picture {
  readonly path: string;
  readonly image: StillImage;
  readonly receipt: Receipt | undefined;
  readonly pixelsMatch: boolean | undefined;
  /** All texts but a receipt that is valid, JSON parsed. */
  readonly texts: readonly (readonly [key: string, value: unknown])[];
  readonly settings: Settings | undefined;
}

const tryPicture = (path: string): Promise<Picture | LatentkitError> =>
  readPicture(path).catch((error: unknown) => {
    if (error instanceof LatentkitError) return error;
    throw error;
  });

async function readPicture(path: string): Promise<Picture> {
  const image = await readStill(await readImage(path));
  const { [RECEIPT_KEY]: written, prompt } = image.text;
  const receipt = written === undefined ? undefined : readReceipt(written);
  const texts = Object.entries(image.text)
    // a text that is not a valid receipt is printed like any other
    .filter(([key]) => key !== RECEIPT_KEY || receipt === undefined)
    .map(([key, text]) => [key, readText(text)] as const);
  const settings = prompt === undefined ? undefined : pictureSettings(readText(prompt), receipt?.node);
  const pixelsMatch = receipt && hasPixels(image, receipt.pixels);
  return { path, image, receipt, pixelsMatch, texts, settings };
}

function printed(
  { path, image, receipt, pixelsMatch, texts, settings }: Picture,
  args: ArgumentsOf<"inspect">,
): string {
  const { width, height, channels, bitDepth, kind } = image;
  const head = `${oneLine(path)}: ${width} x ${height}, ${describeColour(image)}\n`;
  const match = matchOf(image, pixelsMatch === true);
  if (args.get("json")) {
    const text = Object.fromEntries(Object.entries(image.text).map(([key, value]) => [key, readText(value)]));
    const facts = { path, format: kind, width, height, channels, bitDepth };
    const read = {
      settings: settings && jsonSettings(settings),
      text,
      receipt: receipt && { ...receipt, pixelsMatch },
    };
    return `${printJson({ ...facts, ...read })}\n`;
  }
  const rows = [...settingRows(settings, receipt), ...briefRows(receipt, texts, match)];
  if (!args.get("graph")) return head + harmless(rows.map(rowText).join(""));
  const all = texts.map(([key, value]) => `${key}:\n${typeof value === "string" ? value : printJsonPretty(value)}\n`);
  const told = receipt === undefined ? "" : receiptLines(receipt, match);
  return head + harmless(settingRows(settings, receipt).map(rowText).join("") + told + all.join(""));
}

type Row = readonly [name: string, value: string];

/** A row whose further lines stand below its value. */
const rowText = ([name, value]: Row): string =>
  `  ${name.padEnd(NAME)}${value.replaceAll("\n", `\n  ${" ".repeat(NAME)}`)}\n`;
const NAME = 10;

/** Rows that people look for first. */
function settingRows(settings: Settings | undefined, receipt: Receipt | undefined): Row[] {
  const { positive, negative, seed, sampler, scheduler, steps, cfg, denoise, model } = settings ?? {};
  const seeds =
    seed === undefined ? Object.entries(receipt?.seeds ?? {}).map(([key, digits]) => `${digits} (${key})`) : [seed];
  const strength = denoise === undefined || Number(denoise) === 1 ? undefined : `denoise ${denoise}`;
  const rows: readonly (readonly [name: string, value: string | undefined])[] = [
    ["prompt", positive],
    ["negative", negative],
    ["seed", joined(seeds)],
    ["sampler", joined([sampler, scheduler])],
    ["steps", joined([steps, cfg && `cfg ${cfg}`, strength])],
    ["model", model?.name],
  ];
  return rows.flatMap(([name, value]): Row[] => (value === undefined || value === "" ? [] : [[name, value]]));
}

const joined = (values: readonly (string | undefined)[]): string | undefined =>
  values.filter((value) => value !== undefined && value !== "").join(", ") || undefined;

const jsonSettings = ({ positive, negative, model, ...others }: Settings) => ({
  prompt: positive,
  negative,
  ...others,
  model: model?.name,
});

/** Rows on all else that the file holds, and how to see it. */
function briefRows(receipt: Receipt | undefined, texts: Picture["texts"], match: string): Row[] {
  const rows: Row[] = [];
  if (receipt !== undefined) {
    const by = receipt.host.preview ? `${receipt.host.name}, a stand-in for real models` : receipt.host.name;
    rows.push(["receipt", `latentkit ${receipt.engine} (${by}), pixels ${match}`]);
  }
  for (const [key, value] of texts) {
    if (key === "parameters" && typeof value === "string") rows.push(["settings", value]);
    else if (key === "prompt" && isPlainObject(value)) {
      const count = Object.keys(value).length;
      rows.push(["graph", `${count} ${count === 1 ? "node" : "nodes"}; --graph prints it`]);
    }
  }
  const others = texts.map(([key]) => key).filter((key) => key !== "prompt" && key !== "parameters");
  if (others.length > 0) rows.push(["texts", `${others.join(", ")}; --graph prints them`]);
  return rows;
}

const describeColour = ({ channels, bitDepth, kind }: StillImage) =>
  `${COLOURS[channels]}, ${bitDepth} bits${kind === "png" ? "" : `, ${KIND_NAMES[kind]}`}`;

/** Whether a receipt's pixels are the file's, in words. */
function matchOf({ loss }: StillImage, isMatch: boolean): string {
  if (isMatch) return "match";
  return loss === undefined ? "differ" : "cannot be checked in a lossy file";
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

function runtimeRows(runtime: NonNullable<Receipt["runtime"]>): [string, string][] {
  const { name, version, provider, adapter, form, threads, plans } = runtime;
  const gpu = [adapter ?? [], form === undefined ? [] : `attention ${form}`].flat().map((fact) => `, ${fact}`);
  const machine = `${name} ${version} on ${provider}${gpu.join("")}, ${threads} ${threads === 1 ? "thread" : "threads"}`;
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
