import { LatentkitError } from "../base/errors.js";
import { readRegular } from "../io/regular-file.js";

const MAX_FILE_BYTES = 2 ** 30;

/** The error of a picture's file, with the file's name in front where the message has none. */
export function namingFile(error: unknown, path: string): unknown {
  if (!(error instanceof LatentkitError) || error.message.includes(path)) return error;
  return new LatentkitError(error.code, `${path}: ${error.message}`, error.details, { cause: error });
}

/** Reads a picture's file. Fails with file.not-found, file.read-failed or, above 1 GiB, png.too-large. */
export async function readImage(path: string): Promise<Buffer> {
  try {
    const bytes = await readRegular(path, MAX_FILE_BYTES);
    if (bytes !== undefined) return bytes;
    throw new LatentkitError("png.too-large", `${path}: expected a picture of at most 1 GiB.`);
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    const [name, why] =
      code === "ENOENT" ? (["file.not-found", "not found"] as const) : (["file.read-failed", code] as const);
    throw new LatentkitError(name, `Cannot read the image ${path} (${why}).`, {}, { cause: error });
  }
}
