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
  partialExecutionTargets: true,
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
  output: false,
  files: true,
  // every item has its own
  passing: false,
} as const satisfies Record<keyof Job, boolean>;

/** Hash of a batch: of its graph, its job and the template of its files' names. */
export function batchHash(prompt: object, job: Job, name: string | undefined): string {
  const hashed = (Object.keys(IS_HASHED) as (keyof Job)[]).filter((key) => IS_HASHED[key]);
  const text = printJson({
    prompt,
    ...Object.fromEntries(hashed.map((key) => [key, job[key]])),
    files: hashesOf(job.files),
    name,
  });
  return `sha256:${sha256(text)}`;
}

const hashesOf = (files: Job["files"]) =>
  files && Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, sha256(bytes)]));

const sha256 = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex");
