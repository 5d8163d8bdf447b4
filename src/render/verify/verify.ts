import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LatentkitError, nodeName } from "../../base/errors.js";
import { findDefinitions, type Graph, parseGraph } from "../../graph/parse.js";
import { neededBy } from "../../graph/topology.js";
import type { OutputFiles, OutputHandling } from "../../io/files/output-files.js";
import { RECEIPT_KEY } from "../../io/files/save-images.js";
import { isPlainObject, parseJson } from "../../io/json/lossless.js";
import { readStill, type StillImage } from "../../io/pictures/decode.js";
import { type PictureFormat, pictureKind } from "../../io/pictures/format.js";
import { pixelHash } from "../../io/png/png.js";
import type { RawImage } from "../../io/png/raw-image.js";
import { textKeys } from "../../io/png/text-chunks.js";
import { type NodeDefinition, needsNetwork } from "../../nodes/define.js";
import { chooseDevice } from "../../tensor/device/device.js";
import {
  createCounter,
  MAX_RECEIPT_CHARACTERS,
  MAX_RECEIPT_ENTRIES,
  type Receipt,
  readReceipt,
  textHash,
} from "../receipt/receipt.js";
import { type RenderOptions, render } from "../render.js";
import { defaultRegistry } from "../surroundings.js";
import { type Comparison, compareReceipt, type Difference, versionDifference } from "./differences.js";
import { hasPixels, largestDifference } from "./same-pixels.js";

// decisions: verify trusts nothing in a picture; A receipt must be true in full
export type { Difference } from "./differences.js";

/** Result of a check. */
export interface Verdict {
  /** "unverifiable": the file lacks what a check needs. */
  readonly status: "verified" | "different" | "unverifiable";
  /** Reasons why it is not verified; empty if it is. */
  readonly differences: readonly Difference[];
  /**
   * Pixels of a verified picture: equal or, if models painted it, close: at most 4 of 255 off. Rounding of float32 in
   * another order, by another plan or processor, causes such differences.
   */
  readonly pixels?: "equal" | "close";
  /** Circumstances of a picture that is verified: another version, pixels that are close, another runtime. */
  readonly remarks: readonly Difference[];
  readonly receipt?: Receipt;
}

/** Options of the second render; the device changes no pixel. */
export type VerifyOptions = Readonly<Pick<RenderOptions, "inputDir" | "host" | "classAliases" | "device" | "signal">>;

/**
 * Checks a picture's file against its receipt: its own pixels, those of the node that saved it when the graph in the file is
 * rendered again, into a temporary folder that is removed, and all else that the receipt holds. A graph that would reach
 * the network is not rendered, nor is one that models painted if the host has none or different ones. JPEG files, and WebP
 * and AVIF files without `lossless`, cannot be verified. Fails as decodePicture, and with the signal's reason, usage.invalid
 * and device.unavailable.
 */
export async function verifyImage(file: Uint8Array, options: VerifyOptions = {}): Promise<Verdict> {
  chooseDevice(options.device);
  const image = await readStill(file);
  const { prompt, [RECEIPT_KEY]: written } = image.text;
  const receipt = written === undefined ? undefined : readReceipt(written);
  if (receipt === undefined) {
    const why = written === undefined ? "the file has no receipt" : UNREADABLE;
    return unverifiable("prompt", why);
  }
  const loss = image.loss && !hasPixels(image, receipt.pixels) ? image.loss : undefined;
  if (loss !== undefined) return unverifiable("pixels", loss, receipt);
  const own = [...ownDifferences(image, receipt), ...doubles(file)];
  const graph = prompt === undefined ? undefined : harmlessGraph(prompt, receipt, options);
  const isGraph = graph !== undefined && !(graph instanceof LatentkitError);
  const compare = async (): Promise<Comparison> =>
    isGraph ? compareReceipt(graph, receipt, options) : { untrue: [], runtime: [] };
  if (own.length > 0) return verdictOf("different", [...own, ...(await compare()).untrue], receipt);
  if (graph === undefined) return unverifiable("prompt", "the file has no graph", receipt);
  if (!isGraph) return verdictOf("unverifiable", [{ what: "prompt", message: graph.message }], receipt);
  if (receipt.models !== undefined) {
    const { untrue } = await compare();
    if (options.host?.provenance === undefined) return withoutModels(untrue, receipt);
    // other models paint another picture
    if (untrue.some(({ what }) => what === "model")) return verdictOf("different", untrue, receipt);
  }
  const format: PictureFormat = { bitDepth: image.bitDepth === 16 ? 16 : 8 };
  const again = await renderAgain(graph.prompt, receipt, { ...options, format });
  const { untrue: other, runtime } = await compare();
  const pixels = comparePixels(image, again, receipt);
  if (pixels.isVerified) {
    if (other.length > 0) return verdictOf("different", other, receipt);
    const remarks = pixels.remark === undefined ? [] : [pixels.remark, ...runtime];
    const verdict = verdictOf("verified", [], receipt);
    const match = pixels.remark === undefined ? "equal" : "close";
    return { ...verdict, pixels: match, remarks: [...remarks, ...verdict.remarks] };
  }
  if (receipt.redacted === undefined) {
    return verdictOf("different", [pixels.difference, ...other, ...runtime], receipt);
  }
  const hidden = unverifiable(
    "redacted",
    `the file hides values of the graph (${namesOf(receipt.redacted)}); without them it differs`,
    receipt,
  );
  // a known difference outweighs a missing proof
  return other.length === 0 ? hidden : verdictOf("different", [...hidden.differences, ...other], receipt);
}

const UNREADABLE = `the receipt in the file is damaged, of another format, or longer than ${MAX_RECEIPT_CHARACTERS} characters or ${MAX_RECEIPT_ENTRIES} entries of a kind`;

/** Difference of a sample that other orders of float32 sums may leave in a picture that models painted. */
const MOST_OFF = 4;
/** Differences that are reported; a stranger's receipt may have many. */
const MAX_DIFFERENCES = 100;
const NAMED_KEYS = 10;
const NAMED_CHARACTERS = 80;

const namesOf = (keys: readonly string[]): string => {
  const named = keys
    .slice(0, NAMED_KEYS)
    .map((key) => key.slice(0, NAMED_CHARACTERS))
    .join(", ");
  return keys.length > NAMED_KEYS ? `${named} and ${keys.length - NAMED_KEYS} more` : named;
};

/** A different version is the likely cause of differences, but not one itself: equal pixels are the same picture. */
function verdictOf(status: Verdict["status"], differences: readonly Difference[], receipt?: Receipt): Verdict {
  const version = receipt === undefined ? [] : versionDifference(receipt);
  if (status === "verified") return { status, differences, remarks: version, receipt };
  const all = status === "different" ? [...differences, ...version] : differences;
  const more = all.length - MAX_DIFFERENCES;
  if (more <= 0) return { status, differences: all, remarks: [], receipt };
  const rest: Difference = { what: "receipt", message: `There are ${more} more differences.` };
  return { status, differences: [...all.slice(0, MAX_DIFFERENCES), rest], remarks: [], receipt };
}

const unverifiable = (what: Difference["what"], why: string, receipt?: Receipt): Verdict =>
  verdictOf("unverifiable", [{ what, message: `The picture cannot be verified: ${why}.` }], receipt);

/** Differences that show in the file alone. */
function ownDifferences(image: StillImage, receipt: Receipt): Difference[] {
  const differences: Difference[] = [];
  if (!hasPixels(image, receipt.pixels)) {
    differences.push({ what: "pixels", message: "The picture was edited: its pixels are not those that were saved." });
  }
  const { prompt } = image.text;
  if (prompt !== undefined && textHash(prompt) !== receipt.graph) {
    differences.push({
      what: "prompt",
      message: "The graph in the file was edited: it is not the one that was rendered.",
    });
  }
  return differences;
}

/** Texts that a PNG file has twice: readers take either, so another program may show a text that was not verified. */
function doubles(file: Uint8Array): Difference[] {
  const keys = pictureKind(file) === "png" ? textKeys(file) : [];
  return ["prompt", RECEIPT_KEY]
    .filter((key) => keys.indexOf(key) !== keys.lastIndexOf(key))
    .map((key) => ({ what: "prompt", message: `The file has the text "${key}" more than once.` }));
}

/** The graph in the file, or why it is not rendered. */
function harmlessGraph(prompt: string, { node }: Receipt, { classAliases }: VerifyOptions): Graph | LatentkitError {
  try {
    const graph = parseGraph(parseJson(prompt, { what: "Graph in the file" }), { classAliases });
    refuseActing(graph, node);
    return graph;
  } catch (error) {
    if (error instanceof LatentkitError) return error;
    throw error;
  }
}

/** The picture that the same node saves now, or why there is none. */
async function renderAgain(
  graph: object,
  receipt: Receipt,
  options: VerifyOptions & { readonly format: PictureFormat },
): Promise<RawImage | LatentkitError> {
  const countOf = createCounter();
  let again: RawImage | LatentkitError = new LatentkitError(
    "value.invalid",
    `Node ${receipt.node} does not save a picture ${receipt.index}.`,
  );
  const outputHandling: OutputHandling = {
    files: NOTHING_WRITTEN,
    receipt: async (nodeId, picture) => {
      const isReceipts = countOf(nodeId) === receipt.index && nodeId === receipt.node;
      // its memory is reused
      if (isReceipts) again = { ...picture, data: picture.data.slice() };
      return undefined;
    },
  };
  const outputDir = await mkdtemp(join(tmpdir(), "latentkit-verify-"));
  try {
    const targets = [receipt.node];
    const result = await render(graph, { ...options, targets, outputDir, outputHandling, allowNetwork: false });
    return result.error ?? again;
  } catch (error) {
    if (error instanceof LatentkitError && !options.signal?.aborted) return error;
    throw error;
  } finally {
    await rm(outputDir, { recursive: true, force: true });
  }
}

/** Every name is free, and nothing is written. */
const NOTHING_WRITTEN: OutputFiles = {
  makeFolder: async () => {},
  writeNumbered: async (_, name) => name,
  writeNew: async (_folder, _bytes, nameAt) => nameAt(0),
  writeReplacing: async () => {},
  writeAppending: async () => {},
};

/** Pixels of a picture that is rendered again: equal, close (with a remark), or neither. */
type PixelComparison =
  | { readonly isVerified: true; readonly remark?: Difference }
  | { readonly isVerified: false; readonly difference: Difference };

function comparePixels(image: StillImage, again: RawImage | LatentkitError, receipt: Receipt): PixelComparison {
  const { node, index, models, pixels } = receipt;
  const different = (message: string): PixelComparison => {
    return { isVerified: false, difference: { what: "rendered", message } };
  };
  if (again instanceof LatentkitError) return different(`It cannot be rendered again: ${again.message}`);
  if (pixelHash(again) === pixels) return { isVerified: true };
  const rendered = `Rendered again, picture ${index} of node ${node} has other pixels`;
  const largest = models === undefined ? undefined : largestDifference(image, again);
  if (largest === undefined) return different(`${rendered}.`);
  const allowed = `off by up to ${largest} of 255; ${MOST_OFF} is allowed.`;
  if (largest > MOST_OFF) return different(`${rendered}, ${allowed}`);
  return { isVerified: true, remark: { what: "rendered", message: `${rendered} within the tolerance, ${allowed}` } };
}

/** Verdict on a picture that models painted, on a host without any. */
function withoutModels(untrue: readonly Difference[], receipt: Receipt): Verdict {
  const why = "models painted it; name their folder with --models, or pass a host that has them";
  const others = untrue.filter(({ what }) => what !== "host");
  return others.length === 0 ? unverifiable("host", why, receipt) : verdictOf("different", untrue, receipt);
}

const savesImages = ({ writesFiles, inputs }: NodeDefinition): boolean =>
  writesFiles && Object.hasOwn(inputs, "images");

/**
 * Refuses a graph from a file of unknown origin if a node that the picture needs would reach the network. Files that nodes
 * write stay in the output folder, here a temporary one. Fails with graph.invalid and graph.unknown-class.
 */
function refuseActing(graph: Graph, nodeId: string): void {
  const definitions = findDefinitions(graph, defaultRegistry);
  const saver = definitions.get(nodeId);
  if (saver === undefined)
    throw refusal(`the receipt names node ${JSON.stringify(nodeId)}, which the graph does not have`);
  if (!savesImages(saver)) throw refusal(`${label(nodeId, saver.key)} saves no images`);
  for (const id of neededBy(graph, [nodeId])) {
    const definition = definitions.get(id)!;
    const { inputs } = graph.prompt[id] as { inputs?: unknown };
    if (needsNetwork(definition, isPlainObject(inputs) ? inputs : {}))
      throw refusal(`${label(id, definition.key)} reaches the network`);
  }
}

const label = (nodeId: string, node: string) => nodeName({ nodeId, node });

const refusal = (why: string) =>
  new LatentkitError("graph.invalid", `The graph in the file is not rendered again: ${why}.`);
