import { randomInt } from "node:crypto";

// decisions: Time only moves forward
export interface Timer {
  cancel(): void;
}

/** The only source of time in the service; tests pass a fake one. */
export interface Clock {
  /** Wall clock in ms since 1970: for times that people read. May jump. */
  now(): number;
  /** Milliseconds that never jump or go back: for rates, time-outs and expiry. */
  monotonic(): number;
  /** Calls back once after `ms` of monotonic time; keeps the process alive only with `keepAlive`. */
  setTimer(ms: number, callback: () => void, keepAlive?: boolean): Timer;
}

// Node fires longer time-outs at once
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(ms, callback, keepAlive = false) {
    let handle: NodeJS.Timeout;
    const arm = (left: number) => {
      const step = Math.min(left, LONGEST_TIMEOUT_MS);
      handle = setTimeout(() => (left > step ? arm(left - step) : callback()), step);
      if (!keepAlive) handle.unref();
    };
    arm(Math.max(0, ms));
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Wall time that never goes back, in ms: expiry is measured by it. */
export interface SteadyWall {
  (): number;
  /** Advances the time to `mark` where it is behind. */
  notBefore(mark: number): void;
  /** Sets the time, also back: for the moment before anything is measured. */
  set(mark: number): void;
}

/** Wall time read once and advanced by the monotonic clock: a jump of the wall clock expires nothing. */
export function steadyWall(clock: Clock): SteadyWall {
  let anchor = clock.now() - clock.monotonic();
  const now = () => Math.floor(anchor + clock.monotonic());
  const notBefore = (mark: number) => {
    anchor += Math.max(0, mark - now());
  };
  const set = (mark: number) => {
    anchor = mark - clock.monotonic();
  };
  return Object.assign(now, { notBefore, set });
}

/** A clock with the wall time of another one. */
export const withWall = (clock: Clock, now: () => number): Clock => ({
  now,
  monotonic: () => clock.monotonic(),
  setTimer: (ms, callback, keepAlive) => clock.setTimer(ms, callback, keepAlive),
});

/** Returns whether work ends within `ms`, during which the process stays alive. Rejects as the work does. */
export async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: Timer | undefined;
  const timeUp = new Promise<boolean>((resolve) => {
    timer = clock.setTimer(ms, () => resolve(false), true);
  });
  try {
    return await Promise.race([work.then(() => true), timeUp]);
  } finally {
    timer?.cancel();
  }
}

/** A delay less up to a quarter by chance, so that what failed together does not come back together. */
export const jittered = (ms: number, random = () => randomInt(2 ** 32) / 2 ** 32): number =>
  Math.round(ms * (1 - 0.25 * random()));
