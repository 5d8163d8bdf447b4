import { type RecognisedCheckpoint, recogniseCheckpoint } from "#src/host/checkpoint/recognition/recognise.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { isWholeSet } from "./golden.js";
import { modelFile } from "./models-folder.js";
import { weightFile } from "./weight-file.js";

/** The golden checkpoints of the whole set. */
const WHOLE_SET = ["sd1", "sd1_fp32", "sd1_fp8", "sd1_inpaint", "sd2_eps_inpaint", "sd2_v", "sdxl"] as const;

/** Name of a golden checkpoint. */
export type CheckpointName = (typeof WHOLE_SET)[number];

/** The golden checkpoints at hand: those of the repository are three families, and three types of weights. */
export const CHECKPOINTS: readonly CheckpointName[] = isWholeSet ? WHOLE_SET : ["sd1_fp8", "sd1_inpaint", "sdxl"];

/** Puts a golden or tiny checkpoint into a folder and recognises it. */
export const recognised = async (name: string, folder: string): Promise<RecognisedCheckpoint> =>
  recogniseCheckpoint(await weightFile(modelFile(`checkpoints/${name}`, folder)), readValues);
