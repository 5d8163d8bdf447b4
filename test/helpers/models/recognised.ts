import { openModelFile } from "#src/host/checkpoint/recognition/open.js";
import { type RecognisedCheckpoint, recogniseCheckpoint } from "#src/host/checkpoint/recognition/recognise.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { unpackModel } from "./golden.js";

/** The golden checkpoints. */
export const CHECKPOINTS = ["sd1", "sd1_fp32", "sd1_inpaint", "sd2_v", "sd2_eps_inpaint", "sdxl", "sd1_fp8"] as const;

/** Unpacks a golden checkpoint into a folder and recognises it. */
export const recognised = async (name: string, folder: string): Promise<RecognisedCheckpoint> =>
  recogniseCheckpoint(await openModelFile(unpackModel(`checkpoints/${name}`, folder)), readValues);
