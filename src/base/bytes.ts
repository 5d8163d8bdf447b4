import { createHash } from "node:crypto";

/** The same memory as a Buffer. */
export const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Whether the memory has been moved to another thread. */
export function isDetached(memory: ArrayBufferLike): boolean {
  if (memory.byteLength > 0) return false;
  try {
    // refused for detached memory only
    new Uint8Array(memory);
    return false;
  } catch {
    return true;
  }
}

/** SHA-256 in hex. */
export const sha256 = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex");

/** Estimates of the memory of a network, in bytes. */
export interface NetworkMemory {
  /** For its weights. */
  readonly bytes: number;
  /** For a run, besides the weights. */
  readonly work: number;
  /** Part of its file that each run reads: fast as long as it fits into the free memory. */
  readonly pages: number;
  /** Left beside `bytes` and `work`; absent on a GPU, which does not report it. */
  readonly free?: number;
}

/** Bytes as people read them: "12.7 GB". */
export const gigabytes = (bytes: number): string => `${(Math.max(0, bytes) / 1e9).toFixed(1)} GB`;
