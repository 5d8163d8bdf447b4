import { open } from "node:fs/promises";
import { LatentkitError } from "../../../base/errors.js";
import { openWeightFile, type WeightFile } from "../weights/stored.js";
import { unsupported } from "./refusal.js";

const START_BYTES = 9;
/** Brace that opens the header of a .safetensors file, after its length. */
const HEADER_START = 0x7b;

/** Beginnings of files of other formats. */
const FORMATS: readonly (readonly [name: string, bytes: readonly number[]])[] = [
  ["a GGUF file", [0x47, 0x47, 0x55, 0x46]],
  // torch.save writes ZIP archives of pickles, older versions wrote pickles alone
  ["a pickle of PyTorch (.ckpt, .pt or .bin), which could run any code", [0x50, 0x4b]],
  ["a pickle of PyTorch (.ckpt, .pt or .bin), which could run any code", [0x80]],
];

/**
 * Reads the header of a model file. Throws as openWeightFile, and model.unsupported for a GGUF file or a pickle, whatever
 * its name says.
 */
export async function openModelFile(path: string): Promise<WeightFile> {
  try {
    return await openWeightFile(path);
  } catch (error) {
    if (!(error instanceof LatentkitError) || error.code !== "safetensors.invalid") throw error;
    const format = await formatOf(path);
    throw format === undefined ? error : unsupported(path, "a .safetensors file", format);
  }
}

async function formatOf(path: string): Promise<string | undefined> {
  const handle = await open(path, "r");
  try {
    const start = new Uint8Array(START_BYTES);
    await handle.read(start, 0, START_BYTES, 0);
    // the length of a damaged file's header may begin like another format
    if (start[START_BYTES - 1] === HEADER_START) return undefined;
    return FORMATS.find(([, bytes]) => bytes.every((byte, i) => start[i] === byte))?.[0];
  } finally {
    await handle.close();
  }
}
