import { open } from "node:fs/promises";
import { describe, LatentkitError } from "../../../base/errors.js";
import { toTensor } from "../../../io/safetensors/read.js";
import type { StoredWeight } from "./stored.js";

/** Weights of more bytes are read by the runtime alone. */
const MOST_BYTES = 2 ** 20;

/**
 * Reads the values of a small weight. Throws model.invalid for more than 1 MiB, types that are no floats of at most 32
 * bits, and a file that has become shorter, file.read-failed where it cannot be read.
 */
export async function readValues({ file, dtype, shape, from, to }: StoredWeight): Promise<Float32Array> {
  if (to - from > MOST_BYTES) throw invalid(file, `at most ${MOST_BYTES} bytes`, `${to - from}`);
  const bytes = await readBytes(file, from, to - from);
  switch (dtype) {
    case "F32":
    case "F16":
    case "BF16":
      return toTensor({ dtype, shape, bytes }).data;
    case "F8_E4M3":
      return Float32Array.from(bytes, valueOfE4m3);
    case "F8_E5M2": {
      // the upper half of a 16-bit float
      const halves = new Uint8Array(2 * bytes.length);
      for (const [i, byte] of bytes.entries()) halves[2 * i + 1] = byte;
      return toTensor({ dtype: "F16", shape, bytes: halves }).data;
    }
    default:
      throw invalid(file, "floats", dtype);
  }
}

async function readBytes(file: string, from: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  try {
    const handle = await open(file, "r");
    try {
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await handle.read(bytes, filled, length - filled, from + filled);
        if (bytesRead === 0) throw invalid(file, `${from + length} bytes`, `${from + filled}`);
        filled += bytesRead;
      }
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new LatentkitError(
      "file.read-failed",
      `File ${describe(file)} cannot be read: ${code}.`,
      {},
      { cause: error },
    );
  }
  return bytes;
}

/** The value of an 8-bit float: 1 bit of sign, 4 of exponent, 3 of fraction; all ones are NaN, and there is no infinity. */
function valueOfE4m3(byte: number): number {
  const sign = byte & 0x80 ? -1 : 1;
  const [exponent, fraction] = [(byte >> 3) & 15, byte & 7];
  if (exponent === 15 && fraction === 7) return Number.NaN;
  return exponent === 0 ? sign * fraction * 2 ** -9 : sign * (1 + fraction / 8) * 2 ** (exponent - 7);
}

const invalid = (file: string, expected: string, received: string): LatentkitError =>
  new LatentkitError("model.invalid", `A weight of ${describe(file)}: expected ${expected}, received ${received}.`);
