import { isTag, PRIORITY, TAG_FAULT, TAGS } from "../../../render/config/run-terms.js";
import type { Limits } from "../hook-config.js";
import { HookError } from "../hook-error.js";
import type { RunTerms } from "../run.js";

/** Longest run time a request may ask for, unless `run_seconds` allows more. */
const LONGEST_RUN_SECONDS = 3600;

export const maxRunSeconds = (limits: Limits): number => Math.max(limits.run_seconds, LONGEST_RUN_SECONDS);

/** Terms of a start, beside its message: when the run starts, how long it takes, how it is found. */
export interface Terms {
  /** Longest run time; default `run_seconds`. */
  readonly timeoutSeconds?: number;
  /** Whole number from -100 to 100: higher ones start first, across sessions. Default: 0. */
  readonly priority?: number;
  /** Time before which the run does not start, from 0 to `delay_seconds`; later runs of its session wait too. */
  readonly delaySeconds?: number;
  /** Time, from the request, after which a run that has not ended is ended; above `delaySeconds`, at most `delay_seconds`. */
  readonly deadlineSeconds?: number;
  /** Up to 16 texts of 1 to 64 characters, none of them a control character. Equal ones count once. */
  readonly tags?: readonly string[];
}

/** Checks terms and fills in the defaults, for a run created at `createdMark`. Throws invalid_request. */
export function termsOf(
  { timeoutSeconds, priority = 0, delaySeconds = 0, deadlineSeconds, tags = [] }: Terms,
  limits: Limits,
  createdMark: number,
): RunTerms {
  const mostSeconds = maxRunSeconds(limits);
  const seconds = timeoutSeconds ?? limits.run_seconds;
  if (timeoutSeconds !== undefined && !(seconds > 0 && seconds <= mostSeconds)) {
    throw refusal(`timeoutSeconds: expected a number above 0, at most ${mostSeconds}`);
  }
  const { least, most } = PRIORITY;
  if (!Number.isInteger(priority) || priority < least || priority > most) {
    throw refusal(`priority: expected a whole number from ${least} to ${most}`);
  }
  const { delay_seconds: longest } = limits;
  if (!(delaySeconds >= 0 && delaySeconds <= longest)) {
    throw refusal(`delaySeconds: expected a number from 0 to ${longest}`);
  }
  if (deadlineSeconds !== undefined && !(deadlineSeconds > delaySeconds && deadlineSeconds <= longest)) {
    throw refusal(`deadlineSeconds: expected a number above delaySeconds (${delaySeconds}), at most ${longest}`);
  }
  const different = tags.length === 0 ? tags : [...new Set(tags)];
  if (different.length > TAGS.most) {
    throw refusal(`tags: expected at most ${TAGS.most}, received ${different.length}`);
  }
  if (!different.every(isTag)) throw refusal(`tags: ${TAG_FAULT}`);
  return {
    timeoutSeconds: seconds,
    priority,
    dueMark: delaySeconds === 0 ? null : Math.ceil(createdMark + delaySeconds * 1000),
    deadlineMark: deadlineSeconds === undefined ? null : Math.ceil(createdMark + deadlineSeconds * 1000),
    tags: different,
  };
}

/** Terms as texts and numbers: equal ones for equal requests. */
export const termsPayload = (terms: Terms): unknown[] => {
  const { timeoutSeconds = null, priority = 0, delaySeconds = 0, deadlineSeconds = 0, tags = [] } = terms;
  return [timeoutSeconds, priority, delaySeconds, deadlineSeconds, ...tags];
};

const refusal = (sentence: string) => new HookError("invalid_request", sentence);
