import { counterName, nextCounter } from "./output-path.js";
import type { RawImage } from "./png.js";
import { writeNew } from "./write-file.js";

/** How a run's files get their names; nothing is ever overwritten. */
export interface OutputFiles {
  /**
   * Writes a new file whose name begins with `name` and ends with `tail` and ".png". Answers the name. The folder
   * exists. Fails with file.write-failed and then leaves nothing behind.
   */
  writeImage(folder: string, name: string, tail: "" | "_", bytes: Uint8Array): Promise<string>;
}

/** What a run wants of the nodes that save images. */
export interface OutputHandling {
  /** The next free counter where absent. */
  readonly files?: OutputFiles;
  /** A text for the PNG chunk "latentkit": what made the picture, whose bytes are those of the file. */
  readonly receipt?: (nodeId: string, picture: RawImage) => Promise<string | undefined>;
}

/** Names as the host gives them: `<name>_<counter>`, one more than the highest counter in the folder. */
export const counterFiles: OutputFiles = {
  writeImage: async (folder, name, tail, bytes) => {
    const counter = await nextCounter(folder, name, tail);
    const nameAt = (attempt: number) => `${counterName(name, counter + BigInt(attempt))}${tail}.png`;
    return writeNew(folder, bytes, nameAt);
  },
};
