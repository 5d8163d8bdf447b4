import { describe, LatentkitError } from "../../base/errors.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Clip, ClipEncoder, Conditioning, Warn } from "../types.js";
import { Budget, ChunkEncoder } from "./encoding.js";
import { type CheckedOptions, type PromptOptions, readPromptOptions, requireText } from "./options.js";
import { parseA1111, parsePrompt, type Segment } from "./parse.js";
import { scheduleTexts, takeTimestep, zeroRange } from "./schedule.js";
import { CHUNK_LENGTH, chunkSegments, normalizeWeights, requireEncoder, type Token } from "./tokenize.js";
import { encodeWeighted, type Weighted } from "./weigh.js";

/** Options of one encoding, with the token that fills the empty prompt which weights are measured from. */
interface EncodeOptions extends CheckedOptions {
  readonly emptyPad: "end" | "pad";
}

/** Encoding of ComfyUI's own nodes. */
const plainOptions = (warn?: Warn): EncodeOptions => ({ ...readPromptOptions({ warn }), emptyPad: "pad" });

/** One encoded text: cond [1, 77 * chunks, dim of all encoders], pooled [1, dim]. */
interface Encoded {
  readonly cond: Tensor;
  readonly pooled: Tensor | undefined;
}

// decisions: Down-weighting follows the golden vectors; Down-weighting follows the golden vectors
/**
 * Encodes a prompt with weights, BREAK and TIMESTEP; with `a1111PromptStyle` also with schedules, one entry per run of
 * steps. Fails on unknown names, on prompts over 256 chunks and on a clip that returns wrong shapes.
 */
export async function encodePrompt(clip: Clip, text: string, options: PromptOptions = {}): Promise<Conditioning> {
  requireText(text);
  // the reference of these weights always fills with the end token
  const checked: EncodeOptions = { ...readPromptOptions(options), emptyPad: "end" };
  const encoders = encodersOf(clip);
  const budget = new Budget();
  const { text: prompt, zeroed } = takeTimestep(text);
  const conditioning = checked.a1111PromptStyle
    ? await encodeSchedule(encoders, prompt, checked, budget)
    : [toEntry(await encodeParts(encoders, splitParts(prompt), checked, budget))];
  return zeroed === undefined ? conditioning : zeroRange(conditioning, zeroed);
}

/**
 * Encodes a prompt whose only markup is weights, as ComfyUI's CLIPTextEncode does, or one without markup for a clip that
 * reads prompts whole; `warn` receives the parts left out.
 */
export async function encodePlain(clip: Clip, text: string, warn?: Warn): Promise<Conditioning> {
  if (clip?.encodeText !== undefined) return clip.encodeText(text);
  const encoders = encodersOf(clip);
  const segments = parsePrompt(text);
  return [toEntry(await encodeSegments(encoders, () => segments, plainOptions(warn), new Budget()))];
}

/**
 * Encodes a text of its own for each encoder, by the encoder's name, as ComfyUI's CLIPTextEncodeSDXL does; the shorter one
 * is filled with empty chunks. Fails with value.invalid for a clip without these encoders.
 */
export async function encodeSides(
  clip: Clip,
  texts: Readonly<Record<"g" | "l", string>>,
  warn?: Warn,
): Promise<Conditioning> {
  const encoders = encodersOf(clip);
  const segments = new Map(Object.entries(texts).map(([name, text]) => [name, parsePrompt(text)] as const));
  const names = encoders.map(({ name }) => name);
  if ([...segments.keys()].some((name) => !names.includes(name)) || names.some((name) => !segments.has(name))) {
    const message = `Prompt: expected a clip with the encoders g and l, as SDXL's, received ${names.map(describe).join(", ")}.`;
    throw new LatentkitError("value.invalid", message);
  }
  const own = ({ name }: ClipEncoder): readonly Segment[] => segments.get(name)!;
  return [toEntry(await encodeSegments(encoders, own, plainOptions(warn), new Budget()))];
}

/** Splits a prompt at BREAK, inside words too; blank parts are dropped, unless all are blank. */
function splitParts(text: string): Segment[][] {
  const parts = text.split("BREAK").filter((part) => part.trim() !== "");
  return parts.length === 0 ? [[]] : parts.map(parsePrompt);
}

async function encodeSchedule(
  encoders: readonly ClipEncoder[],
  prompt: string,
  options: EncodeOptions,
  budget: Budget,
): Promise<Conditioning> {
  const schedule = scheduleTexts(prompt, options.steps);
  // the A1111 style has one interpretation, and no normalisation
  const own = { ...options, weightInterpretation: "A1111", tokenNormalization: "none" } as const;
  const encoded = new Map<string, Encoded>();
  const conditioning: Conditioning = [];
  for (const { text, startPercent, endPercent } of schedule) {
    const entry = encoded.get(text) ?? (await encodeParts(encoders, parseA1111(text), own, budget));
    encoded.set(text, entry);
    conditioning.push(
      toEntry(entry, schedule.length === 1 ? {} : { start_percent: startPercent, end_percent: endPercent }),
    );
  }
  return conditioning;
}

/** Encodes the parts between BREAKs one by one and joins them on the token axis; pooled is that of the first part. */
async function encodeParts(
  encoders: readonly ClipEncoder[],
  parts: readonly Segment[][],
  options: EncodeOptions,
  budget: Budget,
): Promise<Encoded> {
  const encoded: Encoded[] = [];
  for (const segments of parts) {
    encoded.push(await encodeSegments(encoders, () => segments, options, budget));
  }
  const first = encoded[0]!;
  if (encoded.length === 1) return first;
  const [, , dim = 0] = first.cond.shape;
  const tokens = encoded.reduce((sum, { cond }) => sum + cond.shape[1]!, 0);
  const joined = Tensor.zeros([1, tokens, dim]);
  let at = 0;
  for (const { cond } of encoded) {
    joined.data.set(cond.data, at);
    at += cond.size;
  }
  return { cond: joined, pooled: first.pooled };
}

async function encodeSegments(
  encoders: readonly ClipEncoder[],
  segmentsOf: (encoder: ClipEncoder) => readonly Segment[],
  options: EncodeOptions,
  budget: Budget,
): Promise<Encoded> {
  const tokens = encoders.map((encoder) => chunkSegments(segmentsOf(encoder), encoder, options.warn));
  const count = Math.max(...tokens.map((chunks) => chunks.length));
  budget.spendChunks(count);
  const outputs: Weighted[] = [];
  for (const [i, encoder] of encoders.entries()) {
    const chunks = normalizeWeights(padChunks(tokens[i]!, count, encoder), options.tokenNormalization);
    const run = new ChunkEncoder(encoder, budget, encoder[options.emptyPad]);
    outputs.push(await encodeWeighted(run, chunks, options.weightInterpretation, options.wMax));
  }
  const last = outputs.at(-1)!;
  // a single encoder pools without weights, as does the interpretation "comfy"
  const pooled = outputs.length > 1 && options.applyToPooled ? last.pooled : last.basePooled;
  return {
    cond: joinDims(outputs, count * CHUNK_LENGTH),
    pooled: pooled === undefined ? undefined : Tensor.from(pooled, [1, pooled.length]),
  };
}

/** Appends empty chunks for an encoder that needs fewer than the others. */
function padChunks(chunks: Token[][], count: number, encoder: ClipEncoder): Token[][] {
  const missing = count - chunks.length;
  if (missing === 0) return chunks;
  const [empty = []] = chunkSegments([], encoder);
  return [...chunks, ...new Array<Token[]>(missing).fill(empty)];
}

/** Joins [tokens, dim] of each encoder into one [1, tokens, sum of dims]. */
function joinDims(outputs: readonly Weighted[], tokens: number): Tensor {
  const [only] = outputs;
  if (outputs.length === 1) return Tensor.from(only!.cond, [1, tokens, only!.dim]);
  const dims = outputs.reduce((sum, { dim }) => sum + dim, 0);
  const joined = Tensor.zeros([1, tokens, dims]);
  let offset = 0;
  for (const { cond, dim } of outputs) {
    for (let token = 0; token < tokens; token++) {
      joined.data.set(cond.subarray(token * dim, (token + 1) * dim), token * dims + offset);
    }
    offset += dim;
  }
  return joined;
}

function toEntry(
  { cond, pooled }: Encoded,
  range: { start_percent?: number; end_percent?: number } = {},
): Conditioning[number] {
  return [cond, { ...(pooled === undefined ? {} : { pooled_output: pooled }), ...range }];
}

function encodersOf(clip: Clip): readonly ClipEncoder[] {
  const encoders = (clip as Clip | null | undefined)?.encoders;
  if (Array.isArray(encoders) && encoders.length > 0) {
    for (const encoder of encoders) requireEncoder(encoder);
    return encoders;
  }
  if (clip?.encodeText !== undefined)
    throw new LatentkitError(
      "value.invalid",
      "Prompt: weights, BREAK and TIMESTEP need a Stable Diffusion clip; this clip takes plain text. Use CLIPTextEncode.",
    );
  const message = `Prompt: expected a clip with at least one encoder, received ${describe(clip)}.`;
  throw new LatentkitError("value.invalid", message);
}
