import { counterName, nextCounter } from "./output-path.js";
import type { RawImage } from "./png.js";
import { writeAppending, writeNew, writeReplacing } from "./write-file.js";

/** How a run's files are written. */
export interface OutputFiles {
  /**
   * Writes a new file whose name begins with `name` and ends with `tail` and ".png". Returns the name. The folder
   * exists. Fails with file.write-failed and then leaves nothing behind.
   */
  writeImage(folder: string, name: string, tail: "" | "_", bytes: Uint8Array): Promise<string>;
  /** Writes a new file under the first free of these names. Returns it. Fails as writeImage. */
  writeNew(folder: string, bytes: Uint8Array, nameAt: (attempt: number) => string): Promise<string>;
  /** Writes a file of this name in one step, over one that is there. Fails as writeImage. */
  writeReplacing(folder: string, name: string, bytes: Uint8Array): Promise<void>;
  /** Adds to the end of a file, or makes it. Fails as writeImage. */
  writeAppending(folder: string, name: string, bytes: Uint8Array): Promise<void>;
}

/** Settings of a run for the nodes that save images. */
export interface OutputHandling {
  /** The next free counter where absent. */
  readonly files?: OutputFiles;
  /** A text for the PNG chunk "latentkit": how the picture was made, whose bytes are those of the file. */
  readonly receipt?: (nodeId: string, picture: RawImage) => Promise<string | undefined>;
  /**
   * The calling thread encodes pictures itself: where every processor has a thread that renders, another one only costs the
   * way there and back.
   */
  readonly encodesHere?: boolean;
}

/** Names as ComfyUI gives them: `<name>_<counter>`, one more than the highest counter in the folder. */
export const counterFiles: OutputFiles = {
  writeImage: async (folder, name, tail, bytes) => {
    const counter = await nextCounter(folder, name, tail);
    const nameAt = (attempt: number) => `${counterName(name, counter + BigInt(attempt))}${tail}.png`;
    return writeNew(folder, bytes, nameAt);
  },
  writeNew: (folder, bytes, nameAt) => writeNew(folder, bytes, nameAt),
  writeReplacing: (folder, name, bytes) => writeReplacing(folder, name, bytes),
  writeAppending: (folder, name, bytes) => writeAppending(folder, name, bytes),
};
