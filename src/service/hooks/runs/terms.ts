import { isTag, PRIORITY, TAG_FAULT, TAGS } from "../../../render/config/terms.js";
import type { Limits } from "../hook-config.js";
import { HookError } from "../hook-error.js";
import type { NewRun } from "../store/store.js";

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
): Required<Pick<NewRun, "timeoutSeconds" | "priority" | "dueMark" | "deadlineMark" | "tags">> {
  const mostSeconds = maxRunSeconds(limits);
  const seconds = timeoutSeconds ?? limits.run_seconds;
  const isRunTime = timeoutSeconds === undefined || (seconds > 0 && seconds <= mostSeconds);
  check(isRunTime, `timeoutSeconds: expected a number above 0, at most ${mostSeconds}`);
  const { least, most } = PRIORITY;
  const isPriority = Number.isInteger(priority) && priority >= least && priority <= most;
  check(isPriority, `priority: expected a whole number from ${least} to ${most}`);
  const { delay_seconds: longest } = limits;
  check(delaySeconds >= 0 && delaySeconds <= longest, `delaySeconds: expected a number from 0 to ${longest}`);
  const isDeadline = deadlineSeconds === undefined || (deadlineSeconds > delaySeconds && deadlineSeconds <= longest);
  check(isDeadline, `deadlineSeconds: expected a number above delaySeconds (${delaySeconds}), at most ${longest}`);
  const different = [...new Set(tags)];
  check(different.length <= TAGS.most, `tags: expected at most ${TAGS.most}, received ${different.length}`);
  check(different.every(isTag), `tags: ${TAG_FAULT}`);
  return {
    timeoutSeconds: seconds,
    priority,
    dueMark: delaySeconds === 0 ? null : Math.ceil(createdMark + delaySeconds * 1000),
    deadlineMark: deadlineSeconds === undefined ? null : Math.ceil(createdMark + deadlineSeconds * 1000),
    tags: different,
  };
}

function check(isRight: boolean, sentence: string): void {
  if (!isRight) throw new HookError("invalid_request", sentence);
}
