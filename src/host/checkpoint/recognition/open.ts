import { LatentkitError } from "../../../base/errors.js";
import { openRegular } from "../../../io/regular-file.js";
import { damageOf, otherFormat, START_BYTES } from "../files/other-format.js";
import { withFactors } from "../weights/factors.js";
import { isGgufStart } from "../weights/gguf/header.js";
import { openGgufFile } from "../weights/gguf/open.js";
import { type NamedFile, openWeightFile, quotedName, unsupported, type WeightFile } from "../weights/stored.js";

const EXPECTED = "a .safetensors or GGUF file";

/**
 * Reads the header of a model file. Throws as openWeightFile, withFactors and openGgufFile, and model.unsupported for a file
 * of another format, with any name.
 */
export async function openModelFile(model: NamedFile): Promise<WeightFile> {
  try {
    return await withFactors(await openWeightFile(model));
  } catch (error) {
    if (!(error instanceof LatentkitError) || error.code !== "safetensors.invalid") throw error;
    const { start, bytes } = await beginningOf(model.path);
    if (isGgufStart(start)) return await openGgufFile(model);
    throw formatError(model.name, error, start, bytes);
  }
}

/** The error of a file without a readable header; it says what the file is if the first bytes tell. */
export function formatError(name: string, error: LatentkitError, start: Uint8Array, bytes: number): LatentkitError {
  const damage = damageOf(start, bytes);
  if (damage !== undefined) {
    const message = `Model ${quotedName(name)}: expected ${EXPECTED}, received ${damage}.`;
    return new LatentkitError(error.code, message, { expected: EXPECTED, received: damage }, { cause: error });
  }
  const format = otherFormat(start);
  return format === undefined ? error : unsupported(name, EXPECTED + otherFile(name), format);
}

/** Endings of pickles of models that are published as .safetensors files too. */
const PICKLES = [".bin", ".pth", ".pt", ".ckpt"];
/** Beginnings of their names. */
const PUBLISHED = ["ip-adapter", "t2iadapter", "t2i-adapter"];

/** The name of the .safetensors file to get instead of a pickle, as the end of a clause; "" if none is known. */
function otherFile(name: string): string {
  const own = name.slice(name.lastIndexOf("/") + 1);
  const ending = PICKLES.find((each) => own.endsWith(each));
  if (ending === undefined || !PUBLISHED.some((start) => own.startsWith(start))) return "";
  return `, such as ${quotedName(`${own.slice(0, -ending.length)}.safetensors`)}`;
}

async function beginningOf(path: string): Promise<{ start: Uint8Array; bytes: number }> {
  const handle = await openRegular(path);
  try {
    const { bytesRead, buffer } = await handle.read(new Uint8Array(START_BYTES), 0, START_BYTES, 0);
    return { start: buffer.subarray(0, bytesRead), bytes: (await handle.stat()).size };
  } finally {
    await handle.close();
  }
}
