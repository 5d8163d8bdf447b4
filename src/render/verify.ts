import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, LatentkitError } from "../errors.js";
import { type ClassAliases, parseGraph } from "../graph/parse.js";
import { engineVersion } from "../io/engine-version.js";
import { inputFileHash } from "../io/input-file.js";
import { parseJson } from "../io/json-lossless.js";
import type { OutputFiles, OutputHandling } from "../io/output-files.js";
import { pixelHash } from "../io/pixel-hash.js";
import { type DecodedImage, decodePng } from "../io/png.js";
import { RECEIPT_KEY } from "../io/save-images.js";
import { defaultHost } from "./defaults.js";
import { readReceipt } from "./receipt/read.js";
import { createCounter, type Receipt, textHash } from "./receipt.js";
import { render } from "./render.js";
import { refuseActing } from "./verify/refuse-acting.js";
import { hasPixels } from "./verify/same-pixels.js";

/** Something that is not as the receipt says. */
export interface Difference {
  readonly what: "pixels" | "prompt" | "rendered" | "engine" | "input" | "host" | "redacted";
  /** One sentence. */
  readonly message: string;
}

/** What came of a check. */
export interface Verdict {
  /** "unverifiable": the file does not hold what it takes. */
  readonly status: "verified" | "different" | "unverifiable";
  /** Why it is not verified; empty where it is. */
  readonly differences: readonly Difference[];
  readonly receipt?: Receipt;
}

export interface VerifyOptions {
  /** Where the graph's images are read; ./input where absent. */
  readonly inputDir?: string;
  readonly classAliases?: ClassAliases;
  readonly signal?: AbortSignal;
}

/**
 * Checks a PNG file against its receipt: its own pixels, and those of the node that saved it when the graph in the file
 * is rendered again, into a temporary folder that is removed. A graph that would reach the network is not rendered. Fails with png.invalid, png.too-large and run.interrupted.
 */
export async function verifyImage(file: Uint8Array, options: VerifyOptions = {}): Promise<Verdict> {
  const image = await decodePng(file);
  const { prompt, [RECEIPT_KEY]: written } = image.text;
  const receipt = written === undefined ? undefined : readReceipt(written);
  if (receipt === undefined) {
    return unverifiable("prompt", `the file has ${written === undefined ? "no" : "no readable"} receipt`);
  }
  const own = ownDifferences(image, receipt);
  if (own.length > 0) return { status: "different", differences: own, receipt };
  if (prompt === undefined) return unverifiable("prompt", "the file has no graph", receipt);
  const graph = harmlessGraph(prompt, receipt, options);
  if (graph instanceof LatentkitError) {
    return { status: "unverifiable", differences: [{ what: "prompt", message: graph.message }], receipt };
  }
  const again = await renderAgain(graph, receipt, options);
  if (again === receipt.pixels) return { status: "verified", differences: [], receipt };
  if (receipt.redacted !== undefined) {
    const keys = receipt.redacted.join(", ");
    return unverifiable("redacted", `the file hides values of the graph (${keys}); without them it differs`, receipt);
  }
  const causes = await causesOf(receipt, options);
  return { status: "different", differences: [renderedDifference(again, receipt), ...causes], receipt };
}

const unverifiable = (what: Difference["what"], why: string, receipt?: Receipt): Verdict => ({
  status: "unverifiable",
  differences: [{ what, message: `It cannot be verified: ${why}.` }],
  receipt,
});

/** What the file itself shows. */
function ownDifferences(image: DecodedImage, receipt: Receipt): Difference[] {
  const found: Difference[] = [];
  if (!hasPixels(image, receipt.pixels)) {
    found.push({ what: "pixels", message: "The picture was edited: its pixels are not those that were saved." });
  }
  const { prompt } = image.text;
  if (prompt !== undefined && textHash(prompt) !== receipt.graph) {
    found.push({ what: "prompt", message: "The graph in the file was edited: it is not the one that was rendered." });
  }
  return found;
}

/** The graph in the file, or why it is not rendered. */
function harmlessGraph(prompt: string, { node }: Receipt, { classAliases }: VerifyOptions): object | LatentkitError {
  try {
    const graph = parseGraph(parseJson(prompt, { what: "Graph in the file" }), { classAliases });
    refuseActing(graph, node);
    return graph.prompt;
  } catch (error) {
    if (error instanceof LatentkitError) return error;
    throw error;
  }
}

/** The hash of the picture that the same node saves now, or why there is none. */
async function renderAgain(graph: object, receipt: Receipt, options: VerifyOptions): Promise<string | LatentkitError> {
  const { inputDir, classAliases, signal } = options;
  const countOf = createCounter();
  let found: string | LatentkitError = new LatentkitError(
    "value.invalid",
    `Node ${receipt.node} saves no picture of number ${receipt.index}.`,
  );
  const output: OutputHandling = {
    files: NOTHING_WRITTEN,
    receipt: async (nodeId, picture) => {
      const isWanted = countOf(nodeId) === receipt.index && nodeId === receipt.node;
      if (isWanted) found = pixelHash(picture);
      return undefined;
    },
  };
  const outputDir = await mkdtemp(join(tmpdir(), "latentkit-verify-"));
  try {
    const targets = [receipt.node];
    const result = await render(graph, {
      targets,
      outputDir,
      inputDir,
      classAliases,
      output,
      fetch: noNetwork,
      signal,
    });
    if (result.status === "interrupted") throw new LatentkitError("run.interrupted", "The run was interrupted.");
    return result.error ?? found;
  } catch (error) {
    if (error instanceof LatentkitError && error.code !== "run.interrupted") return error;
    throw error;
  } finally {
    await rm(outputDir, { recursive: true, force: true });
  }
}

/** Every name is free, and no byte is written. */
const NOTHING_WRITTEN: OutputFiles = {
  writeImage: async (_, name) => name,
  writeNew: async (_folder, _bytes, nameAt) => nameAt(0),
  writeReplacing: async () => {},
  writeAppending: async () => {},
};

const noNetwork: typeof fetch = async () => {
  throw new LatentkitError("remote.failed", "A graph that is verified reaches no network.");
};

function renderedDifference(again: string | LatentkitError, { node, index }: Receipt): Difference {
  const what = "rendered";
  if (typeof again !== "string") return { what, message: `It cannot be rendered again: ${again.message}` };
  return { what, message: `Rendered again, picture ${index} of node ${node} has other pixels.` };
}

/** What is not as it was when the picture was rendered. */
async function causesOf({ engine, host, inputs }: Receipt, { inputDir }: VerifyOptions): Promise<Difference[]> {
  const causes: Difference[] = [];
  const now = engineVersion();
  if (engine !== now) {
    causes.push({ what: "engine", message: `It was rendered by latentkit ${engine}; this is ${now}.` });
  }
  if (host.name !== defaultHost.name || host.preview !== defaultHost.preview) {
    causes.push({
      what: "host",
      message: `Its models came from the host ${describe(host.name)}; this is ${describe(defaultHost.name)}.`,
    });
  }
  for (const [name, hash] of Object.entries(inputs)) {
    const message = await inputDifference(resolve(inputDir ?? "input"), name, hash);
    if (message !== undefined) causes.push({ what: "input", message });
  }
  return causes;
}

async function inputDifference(folder: string, name: string, hash: string): Promise<string | undefined> {
  try {
    const isSame = `sha256:${await inputFileHash(folder, name)}` === hash;
    return isSame ? undefined : `The input file ${describe(name)} is another one now.`;
  } catch (error) {
    if (error instanceof LatentkitError) return error.message;
    throw error;
  }
}
