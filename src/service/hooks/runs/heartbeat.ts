import type { Clock, Timer } from "../clock.js";

export interface Heartbeat {
  start(): void;
  stop(): void;
}

/** Calls `beat` every `seconds`, counted from the end of the last call; 0: never. */
export function createHeartbeat(clock: Clock, seconds: number, beat: () => Promise<unknown>): Heartbeat {
  let timer: Timer | undefined;
  let isStopped = false;
  const start = () => {
    timer?.cancel();
    if (!isStopped && seconds > 0) timer = clock.setTimer(seconds * 1000, () => void beat().then(start));
  };
  const stop = () => {
    isStopped = true;
    timer?.cancel();
  };
  return { start, stop };
}
