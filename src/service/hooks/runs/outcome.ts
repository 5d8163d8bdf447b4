import { ERROR_CODES, LatentkitError } from "../../../base/errors.js";
import type { Config } from "../../../render/config/config.js";
import { jittered } from "../clock.js";
import type { TerminalState } from "../run.js";
import type { NewEvent } from "../store/queue-store.js";
import { messageOf, toJsonLine } from "./safe-json.js";

const UNKNOWN_CODE = "agent_failed";

export const TERMINAL_EVENTS = ["done", "error", "aborted"] as const;

/** The final state of a run, with its one terminal event. */
export interface Outcome {
  readonly state: TerminalState;
  readonly terminal: NewEvent & { readonly event: (typeof TERMINAL_EVENTS)[number] };
  readonly error: { readonly error: string; readonly code: string } | null;
}

/** Outcome of an agent that returned: failed where the result has no response, or one longer than a run may store. */
export function returned(result: unknown, maxBytes: number): Outcome {
  const response = (result as { response?: unknown } | null | undefined)?.response;
  if (typeof response !== "string") {
    return ended("failed", "The agent must return { response: string }.", "invalid_response");
  }
  const data = toJsonLine({ response });
  if (Buffer.byteLength(data) > maxBytes) {
    return ended("failed", `The agent's response is longer than ${maxBytes} bytes.`, "response_too_large");
  }
  return { state: "succeeded", terminal: { event: "done", data }, error: null };
}

export function failed(thrown: unknown): Outcome {
  return ended("failed", messageOf(thrown), codeOf(thrown));
}

/** Whether an agent's error says so itself, by `retryable: true`, or has a code that the policy names. */
export function isTransient(thrown: unknown, policy: RetryPolicy): boolean {
  try {
    if ((thrown as { retryable?: unknown } | null | undefined)?.retryable === true) return true;
  } catch {
    return false;
  }
  return policy.isTransient(codeOf(thrown));
}

/** Never throws, whatever was thrown: a proxy may throw at `instanceof`. */
function codeOf(thrown: unknown): string {
  try {
    const code = thrown instanceof LatentkitError ? thrown.code : undefined;
    return typeof code === "string" && Object.hasOwn(ERROR_CODES, code) ? code : UNKNOWN_CODE;
  } catch {
    return UNKNOWN_CODE;
  }
}

/** `text`: the run's deltas so far, joined; null where there are none. */
export function cancelled(text: string | null): Outcome {
  return { state: "cancelled", terminal: { event: "aborted", data: toJsonLine({ text }) }, error: null };
}

export const timedOut = (seconds: number): Outcome =>
  ended("timed_out", `The run took longer than ${seconds} s.`, "timed_out");

export const interrupted = (): Outcome =>
  ended("interrupted", "The service stopped while the run was running.", "interrupted");

export const expired = (seconds: number): Outcome =>
  ended("expired", `The run waited in the queue for more than ${seconds} s.`, "expired");

/** Outcome of a run that had not ended by its deadline, in steady ms; `state`: expired for one that waited. */
export const pastDeadline = (state: "expired" | "timed_out", deadlineMark: number): Outcome =>
  ended(state, `The run did not end by its deadline, ${new Date(deadlineMark).toISOString()}.`, "deadline_exceeded");

function ended(state: TerminalState, message: string, code: string): Outcome {
  // through UTF-8 and back: a lone surrogate of an agent's message would not survive the store
  const error = { error: Buffer.from(message).toString(), code };
  return { state, terminal: { event: "error", data: toJsonLine(error) }, error };
}

/** When and how often a run starts again whose error is transient. */
export interface RetryPolicy {
  /** Most attempts of a run, the first one included. */
  readonly attempts: number;
  /** Delay after an attempt that failed, 1 for the first, in ms. */
  delayMs(attempt: number): number;
  /** Whether an error with a code is transient. */
  isTransient(code: string): boolean;
  /** Longest time of a run beyond its first attempt, in s, if an attempt takes `runSeconds`. */
  mostSeconds(runSeconds: number): number;
}

type RetryConfig = Config["channels"]["web"]["retries"];

// decisions: Only you can say that a failure may be retried
/** Makes the policy of a configuration. The delay doubles with each attempt, less up to a quarter by chance. */
export function createRetryPolicy(
  { attempts, first_delay_seconds: first, longest_delay_seconds: longest, codes }: RetryConfig,
  random?: () => number,
): RetryPolicy {
  const transient = new Set<string>(codes);
  return {
    attempts,
    delayMs: (attempt) => jittered(1000 * Math.min(first * 2 ** (attempt - 1), longest), random),
    isTransient: (code) => transient.has(code),
    mostSeconds: (runSeconds) => (attempts - 1) * (longest + runSeconds),
  };
}
