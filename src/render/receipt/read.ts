import type { z } from "zod";
import { LatentkitError } from "../../base/errors.js";
import { lazy, loadZod } from "../../base/lazy.js";
import { parseJson } from "../../io/json/lossless.js";
import type { Receipt } from "./receipt.js";

/** Longest receipt, far above any real one: anyone can write one. */
export const MAX_RECEIPT_CHARACTERS = 2 ** 22;
/** The most seeds, streams of noise, input files, model files, networks and hidden keys, each. */
export const MAX_RECEIPT_ENTRIES = 10_000;

/** Longest version, which is printed unchanged. */
const MAX_ENGINE_CHARACTERS = 100;

const receiptSchema = lazy(() => {
  const { z } = loadZod();
  const text = z.string().max(4096);
  const hash = z.string().regex(/^sha256:[0-9a-f]{64}$/);
  const pixelHash = z.string().regex(/^blake3:[0-9a-f]{64}$/);
  const entries = <Value extends z.ZodType>(value: Value) =>
    z.record(text, value).refine((record) => Object.keys(record).length <= MAX_RECEIPT_ENTRIES);

  const host = z.looseObject({ name: text, preview: z.boolean() });
  const runtime = z.looseObject({
    name: text,
    version: text.max(MAX_ENGINE_CHARACTERS),
    provider: text,
    adapter: text.optional(),
    form: text.optional(),
    threads: z.int().positive(),
    plans: entries(text),
  });
  return z.looseObject({
    version: z.literal(1),
    engine: text.max(MAX_ENGINE_CHARACTERS),
    graph: hash,
    node: text,
    index: z.int().nonnegative(),
    pixels: pixelHash,
    seeds: entries(text),
    noise: entries(z.enum(["cpu", "gpu"])),
    inputs: entries(hash),
    host,
    models: entries(hash).optional(),
    runtime: runtime.optional(),
    redacted: z.array(text).max(MAX_RECEIPT_ENTRIES).optional(),
  });
});

/**
 * Reads a file's text as a receipt; undefined if it is not one, or too large. Anyone can have written
 * it: it proves nothing. Fields of later versions stay.
 */
export function readReceipt(json: string): Receipt | undefined {
  if (json.length > MAX_RECEIPT_CHARACTERS) return undefined;
  try {
    return receiptSchema().safeParse(parseJson(json)).data as Receipt | undefined;
  } catch (error) {
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}

/** Fields that no receipt of this version has. */
export function unknownFields(receipt: Receipt): string[] {
  const { shape } = receiptSchema();
  const own = Object.keys(receipt).filter((key) => !Object.hasOwn(shape, key));
  const hosts = Object.keys(receipt.host).filter((key) => !Object.hasOwn(shape.host.shape, key));
  const runtimes = Object.keys(receipt.runtime ?? {}).filter(
    (key) => !Object.hasOwn(shape.runtime.unwrap().shape, key),
  );
  return [...own, ...hosts.map((key) => `host.${key}`), ...runtimes.map((key) => `runtime.${key}`)];
}
