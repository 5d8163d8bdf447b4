import { createHash } from "node:crypto";
import { printJson } from "../../io/json/lossless.js";
import type { Job } from "../job.js";

/**
 * Fields of a job that an item's pictures and their names depend on; folders may move, and a machine may differ. Their
 * order is that of the text under the hash: one that changes makes all journals strangers.
 */
const IS_HASHED = {
  set: true,
  targets: true,
  classAliases: true,
  metadata: true,
  redact: true,
  extraPnginfo: true,
  setup: true,
  format: true,
  parameters: true,
  outputDir: false,
  inputDir: false,
  cacheDir: false,
  config: false,
  partial: false,
  allowNetwork: false,
  device: false,
  previews: false,
  // every item has its own
  passing: false,
} as const satisfies Record<keyof Job, boolean>;

/** Hash of a batch: of its graph, its job and the template of its files' names. */
export function batchHash(prompt: object, job: Job, name: string | undefined): string {
  const hashed = (Object.keys(IS_HASHED) as (keyof Job)[]).filter((key) => IS_HASHED[key]);
  const text = printJson({ prompt, ...Object.fromEntries(hashed.map((key) => [key, job[key]])), name });
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
