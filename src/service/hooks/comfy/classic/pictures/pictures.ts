import type { Clock } from "../../../clock.js";
import { WorkThreads } from "../../../work-threads.js";
import type { MaskWork } from "./masked-picture.js";
import type { ViewWork } from "./view-picture.js";

export type PictureWork = ViewWork | MaskWork;

/** A file, or why there is none: undefined where that needs no sentence. */
export type PictureDone = { readonly bytes: Uint8Array<ArrayBuffer> } | { readonly refusal: string | undefined };

export type Pictures = WorkThreads<PictureWork, PictureDone>;

/** Work on pictures, one after the other: each is in memory as a whole. */
export const createPictures = (clock: Clock): Pictures =>
  new WorkThreads({
    program: new URL("./picture-thread.js", import.meta.url),
    mostThreads: 1,
    mostWaiting: 256,
    mostMs: 60_000,
    refusal: "the picture takes too long to convert",
    clock,
  });
