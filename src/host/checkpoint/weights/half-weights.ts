import type { FileHandle } from "node:fs/promises";
import { basename } from "node:path";
import { openRegular } from "../../../io/regular-file.js";
import { placedWeights, readError, type StoredWeight, type WeightMap } from "./stored.js";

/** Bytes that are looked at before the event loop turns. */
const PART_BYTES = 2 ** 20;
const MAGNITUDE = 0x7fff;
/** 65,280, the largest bfloat16 that is no larger than a float16. */
const LARGEST = 0x477f;

// decision 356
/** Weights of a file that can be held as F16, though they are stored in another type. */
export class HalfWeights {
  #found: Promise<ReadonlySet<StoredWeight>> | undefined;

  constructor(private readonly weights: WeightMap) {}

  /**
   * Those in 8 bits, whose values F16 has, and those in BF16 whose values are not beyond F16's; numbers below 2^-24 become 0.
   * Reads what is in BF16 once. Rejects with file.read-failed.
   */
  find(): Promise<ReadonlySet<StoredWeight>> {
    this.#found ??= this.#find();
    return this.#found;
  }

  async #find(): Promise<ReadonlySet<StoredWeight>> {
    const found = new Set<StoredWeight>();
    const files = new Map<string, StoredWeight[]>();
    for (const weight of placedWeights(this.weights)) {
      if (weight.dtype.startsWith("F8")) found.add(weight);
      else if (weight.dtype === "BF16") files.set(weight.file, [...(files.get(weight.file) ?? []), weight]);
    }
    for (const [file, weights] of files) {
      let handle: FileHandle | undefined;
      try {
        handle = await openRegular(file);
        for (const weight of weights) if (await isWithinFloat16(handle, weight)) found.add(weight);
      } catch (error) {
        throw readError(basename(file), error);
      } finally {
        await handle?.close();
      }
    }
    return found;
  }
}

/** Whether a file's numbers in BF16 are none beyond those of F16. One that has become shorter has none at its end. */
async function isWithinFloat16(handle: FileHandle, { from, to }: StoredWeight): Promise<boolean> {
  const bytes = new Uint8Array(Math.min(PART_BYTES, to - from));
  for (let position = from; position < to; ) {
    const { bytesRead } = await handle.read(bytes, 0, Math.min(bytes.length, to - position), position);
    if (bytesRead < 2) return false;
    const count = bytesRead >> 1;
    const numbers = new Uint16Array(bytes.buffer, 0, count);
    for (let i = 0; i < count; i++) if ((numbers[i]! & MAGNITUDE) > LARGEST) return false;
    position += 2 * count;
  }
  return true;
}
