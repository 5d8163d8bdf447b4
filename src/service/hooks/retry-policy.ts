import { randomInt } from "node:crypto";
import type { Config } from "../../render/config/config.js";

/** Part of a delay that is left to chance: runs that failed together do not all come back together. */
const JITTER = 0.25;

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

const chance = () => randomInt(2 ** 32) / 2 ** 32;

// decision 274
/** Makes the policy of a configuration. The delay doubles with each attempt, less up to a quarter by chance. */
export function createRetryPolicy(
  { attempts, first_delay_seconds: first, longest_delay_seconds: longest, codes }: RetryConfig,
  random: () => number = chance,
): RetryPolicy {
  const transient = new Set<string>(codes);
  return {
    attempts,
    delayMs: (attempt) => Math.round(1000 * Math.min(first * 2 ** (attempt - 1), longest) * (1 - JITTER * random())),
    isTransient: (code) => transient.has(code),
    mostSeconds: (runSeconds) => (attempts - 1) * (longest + runSeconds),
  };
}
