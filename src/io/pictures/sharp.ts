import type { Sharp } from "sharp";
import { LatentkitError } from "../../base/errors.js";
import { loadSharp } from "../../base/lazy-packages.js";
import { KIND_NAMES, type PictureKind } from "./kind.js";

/** The package sharp. Fails with picture.needs-sharp where it is missing; `purpose` begins the sentence. */
export function requireSharp(purpose: string): ReturnType<typeof loadSharp> {
  try {
    return loadSharp();
  } catch (error) {
    const message = `${purpose} needs the package sharp, which does not load here: run "npm install sharp".`;
    throw new LatentkitError("picture.needs-sharp", message, {}, { cause: error });
  }
}

/** Part of a file that is read. */
export interface Reading {
  readonly kind: PictureKind;
  /** Number of frames, from the first on. Default: 1. */
  readonly frames?: number;
  /** Limit of their pixels, checked before these are allocated. */
  readonly maxPixels: number;
}

/** Lets sharp read the first frames of a file. Fails with picture.needs-sharp, picture.invalid and picture.too-large. */
export async function openWithSharp<T>(
  bytes: Uint8Array,
  { kind, frames = 1, maxPixels }: Reading,
  read: (image: Sharp) => Promise<T>,
): Promise<T> {
  const name = KIND_NAMES[kind];
  const sharp = requireSharp(`Reading ${name} file`);
  try {
    // "truncated" is the strictest that lets the warnings of sound files pass
    const image = sharp(bytes, { limitInputPixels: maxPixels, failOn: "truncated", pages: frames });
    return await read(image);
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const { message } = error as Error;
    if (/pixel limit/i.test(message)) {
      const expected = `at most ${maxPixels} pixels in all frames`;
      throw new LatentkitError(
        "picture.too-large",
        `Picture: expected ${expected}, received more.`,
        {},
        { cause: error },
      );
    }
    const reason = message
      .split("\n", 1)[0]!
      .slice(0, 200)
      .replace(/(?<!\.)\.+$/, "");
    const text = `Picture: expected ${name} file that can be read, received a damaged one (${reason}).`;
    throw new LatentkitError("picture.invalid", text, {}, { cause: error });
  }
}

/** Version of what reads files other than PNG, which its pixels follow from; undefined where sharp is missing. */
export function decoderVersion(): string | undefined {
  try {
    const { versions } = loadSharp();
    return `sharp ${versions.sharp ?? ""} libvips ${versions.vips}`;
  } catch {
    return undefined;
  }
}
