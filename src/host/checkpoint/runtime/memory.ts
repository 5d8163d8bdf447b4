import { LatentkitError } from "../../../base/errors.js";
import { gigabytes } from "../../../base/memory.js";

/** By how much an estimate may be too high. */
const DOUBT = 0.15;

/** Bytes that a network takes: for its weights, and for a run. */
interface Need {
  readonly weights: number;
  readonly work: number;
}

// decision 363
/**
 * Throws memory.missing for a network that does not fit: `free` is what is left when it has what it takes, and negative
 * where that is too little. On macOS nothing tells what the system can still give.
 */
export function requireRoom(label: string, { weights, work }: Need, free: number, platform = process.platform): void {
  const need = weights + work;
  if (platform === "darwin" || free + DOUBT * need >= 0) return;
  const advice =
    weights > work
      ? "a file with fewer bits for a number, such as GGUF's Q4_K, needs less"
      : "a smaller picture, fewer at a time or tiles need less";
  const message = `${label} needs ${gigabytes(need)} of memory, of which ${gigabytes(need + free)} are free: ${advice}.`;
  throw new LatentkitError("memory.missing", message);
}
