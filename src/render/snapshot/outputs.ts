import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { type DecodedImage, decodePng, pixelHash } from "../../io/png/png.js";
import { pythonText } from "../../io/python-text.js";
import { type RenderOptions, render } from "../render.js";
import { filesOf } from "../result.js";

/** A picture as a snapshot keeps it: the hash of its pixels, which no encoder changes. */
export interface PictureFact {
  readonly kind: "picture";
  readonly node: string;
  readonly width: number;
  readonly height: number;
  readonly pixels: string;
}

/** Texts that a node shows. */
export interface TextFact {
  readonly kind: "text";
  readonly node: string;
  readonly text: readonly string[];
}

/** Any other file, a latent for example. */
export interface FileFact {
  readonly kind: "file";
  readonly node: string;
  /** Ending of its name. */
  readonly type: string;
  readonly sha256: string;
}

export type OutputFact = PictureFact | TextFact | FileFact;

/** One result of a graph; a picture with the PNG file it was in. */
export interface RenderedOutput {
  readonly fact: OutputFact;
  readonly png?: Buffer;
}

/** Outputs of a graph, and the warnings of its run. */
export interface Rendered {
  readonly outputs: readonly RenderedOutput[];
  readonly warnings: readonly string[];
}

/** Options of a render that is compared: what does not depend on machine, time or network. */
export type SnapshotRenderOptions = Readonly<
  Pick<
    RenderOptions,
    | "set"
    | "targets"
    | "inputDir"
    | "host"
    | "registry"
    | "setup"
    | "classAliases"
    | "device"
    | "partial"
    | "config"
    | "signal"
  >
>;

/** Time of every snapshot: nodes that write the date write this one. */
const CLOCK = () => new Date(Date.UTC(2000, 0, 1));

/**
 * Renders a graph into a temporary folder that is removed, and returns its pictures, shown texts and files, node by node
 * in the order of their ids. Files carry no metadata, the clock stands still, and a graph that needs the network is refused.
 * Rejects as `render`, and as the run failed.
 */
export async function renderOutputs(graph: string | object, options: SnapshotRenderOptions): Promise<Rendered> {
  const outputDir = await mkdtemp(join(tmpdir(), "latentkit-snapshot-"));
  try {
    const result = await render(graph, {
      ...options,
      outputDir,
      metadata: "none",
      clock: CLOCK,
      allowNetwork: false,
    });
    if (result.status === "failed") throw result.error ?? new LatentkitError("node.failed", "The run failed.");
    const outputs: RenderedOutput[] = [];
    for (const [node, ui] of Object.entries(result.ui)) {
      const text = (ui.text ?? []).map((item) => (typeof item === "string" ? item : pythonText(item)));
      if (text.length > 0) outputs.push({ fact: { kind: "text", node, text } });
      for (const { path } of filesOf(ui, outputDir)) outputs.push(await outputOf(node, path));
    }
    return { outputs, warnings: result.warnings };
  } finally {
    await rm(outputDir, { recursive: true, force: true });
  }
}

async function outputOf(node: string, path: string): Promise<RenderedOutput> {
  const bytes = await readFile(path);
  const type = extname(path).toLowerCase();
  if (type !== ".png") return { fact: { kind: "file", node, type, sha256: sha256(bytes) } };
  const image = await decodePng(bytes);
  const { width, height } = image;
  return { fact: { kind: "picture", node, width, height, pixels: hashOf(image) }, png: bytes };
}

/** Hash of the pixels: that of receipts for 8 bits, SHA-256 of the samples for 16. */
function hashOf({ data, width, height, channels }: DecodedImage): string {
  if (data instanceof Uint8Array) return pixelHash({ data, width, height, channels });
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return `sha256:${sha256(Buffer.concat([Buffer.from(`${width} ${height} ${channels} `), bytes]))}`;
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
