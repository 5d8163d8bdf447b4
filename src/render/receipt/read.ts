import { z } from "zod";
import { LatentkitError } from "../../errors.js";
import { parseJson } from "../../io/json-lossless.js";
import type { Receipt } from "../receipt.js";

const text = z.string().max(4096);
const hash = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const pixelHash = z.string().regex(/^blake3:[0-9a-f]{64}$/);

const schema: z.ZodType<Receipt> = z.object({
  version: z.literal(1),
  engine: text,
  graph: hash,
  node: text,
  index: z.int().nonnegative(),
  pixels: pixelHash,
  seeds: z.record(text, text),
  noise: z.record(text, z.enum(["cpu", "gpu"])),
  inputs: z.record(text, hash),
  host: z.object({ name: text, preview: z.boolean() }),
  redacted: z.array(text).optional(),
});

/** Reads a file's text as a receipt; undefined where it is none. Anybody can have written it: it proves nothing. */
export function readReceipt(json: string): Receipt | undefined {
  try {
    return schema.safeParse(parseJson(json)).data;
  } catch (error) {
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}
