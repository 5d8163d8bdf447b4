import { LatentkitError } from "../base/errors.js";
import type { OutputFiles } from "../io/files/output-files.js";

/** Files that can be written until `close`: what a node that was left alone does later comes too late. */
export function createClosable(files: OutputFiles): { readonly files: OutputFiles; close(): void } {
  let isClosed = false;
  const open = (): OutputFiles => {
    if (isClosed) throw new LatentkitError("run.interrupted", "The run was interrupted: nothing more is written.");
    return files;
  };
  return {
    files: {
      keepsBytes: files.keepsBytes,
      makeFolder: async (...args) => open().makeFolder(...args),
      writeNumbered: async (...args) => open().writeNumbered(...args),
      writeNew: async (...args) => open().writeNew(...args),
      writeReplacing: async (...args) => open().writeReplacing(...args),
      writeAppending: async (...args) => open().writeAppending(...args),
    },
    close: () => {
      isClosed = true;
    },
  };
}
