import { fileURLToPath } from "node:url";

/** Folder of the golden models: tiny checkpoints and what ComfyUI computes with them. */
export const goldenModels = (): string => fileURLToPath(new URL("../../../../test/golden/models", import.meta.url));
