import { describe, type ErrorCode, LatentkitError } from "../base/errors.js";
import { isObject } from "../base/options.js";
import type { Job } from "../graph/job.js";
import {
  isPlainObject,
  MAX_DEPTH,
  mayLackDigits,
  NumberLiteral,
  parseJson,
  printJsonUnicode,
} from "../io/json/lossless.js";
import { plain } from "../nodes/values.js";

/**
 * A job as JSON text, which keeps every digit of `set` and `extraPnginfo`, without its `files`. Throws usage.invalid for a
 * value that JSON would lose.
 */
export function printJob(job: Job): string {
  refuseUnsendable(job);
  const { files, setup, ...printed } = job;
  return printJsonUnicode({ ...printed, setup: setup?.href });
}

/** The job that `printJob` printed. */
export function parseJob(text: string): Job {
  const { setup, config, ...job } = parseJson(text) as Job & { setup?: string };
  return {
    ...job,
    ...(setup !== undefined && { setup: new URL(setup) }),
    // nodes compute with numbers, not with the digits of a file
    ...(config !== undefined && { config: plain(config) as Job["config"] }),
  };
}

/** Options for which JSON may lose more, or less, than for others. */
const STRICTNESS: { readonly [Option in keyof Job]?: Strictness } = { set: { digits: true }, config: { absent: true } };

/** Throws usage.invalid for a value that would not reach a worker thread as it is. */
export function refuseUnsendable({ files, ...job }: Job): void {
  for (const [option, values] of Object.entries(job)) {
    // by their rules the others are flags, texts and lists of texts
    for (const [key, value] of isObject(values) ? Object.entries(values) : []) {
      refuseLoss(option, key, value, "usage.invalid", STRICTNESS[option as keyof Job]);
    }
  }
}

/** Further losses that count, and values that JSON may lose. */
interface Strictness {
  /** Numbers whose last digits JavaScript may have rounded count as lost. */
  readonly digits?: boolean;
  /** A key whose value is undefined counts as an absent key. */
  readonly absent?: boolean;
}

/** Throws an error of this code, which names subject and key, for a value that JSON would not keep. */
export function refuseLoss(
  subject: string,
  key: string,
  value: unknown,
  code: ErrorCode,
  strictness: Strictness = {},
): void {
  const lost = lostIn(value, 0, strictness);
  if (lost === undefined) return;
  const expected =
    typeof lost.value === "number" && mayLackDigits(lost.value)
      ? "a whole number beyond 2^53 as a bigint or text, with all its digits"
      : "a text, a number, true, false, null, or a list or plain object of these";
  const received = typeof lost.value === "symbol" ? "a symbol" : describe(lost.value);
  throw new LatentkitError(code, `${subject}, ${key}: expected ${expected}, received ${received}.`);
}

/** The first value inside that JSON would lose; undefined if there is none. */
function lostIn(value: unknown, depth: number, strictness: Strictness): { readonly value: unknown } | undefined {
  if (typeof value === "number") {
    return Number.isFinite(value) && !(strictness.digits && mayLackDigits(value)) ? undefined : { value };
  }
  if (value === null || ["string", "bigint", "boolean"].includes(typeof value)) return undefined;
  if (value === undefined && strictness.absent) return undefined;
  if (value instanceof NumberLiteral) return undefined;
  if (depth >= MAX_DEPTH || !(Array.isArray(value) || isPlainObject(value))) return { value };
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    const lost = lostIn(inner, depth + 1, strictness);
    if (lost !== undefined) return lost;
  }
  return undefined;
}
