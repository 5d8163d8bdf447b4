import { onAbort } from "../base/abort.js";
import { LatentkitError } from "../base/errors.js";
import type { OutputFiles } from "../io/files/output-files.js";

/** Time of a node after an abort before nobody waits for it any longer. */
export const GRACE_MS = 2000;

/**
 * Waits for work that listens to the signal, and once that is aborted for the grace: then a node that does not listen is
 * left alone with what it does. Returns whether the work came to its own end; rejects as it does.
 */
export function orGivenUp(work: Promise<void>, signal: AbortSignal | undefined, graceMs: number): Promise<boolean> {
  const done = work.then(() => true);
  if (signal === undefined) return done;
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const start = () => {
      timer = setTimeout(() => resolve(false), graceMs);
    };
    const leave = onAbort(signal, start);
    const settle = () => {
      leave();
      clearTimeout(timer);
    };
    // what it throws once it was left alone is nobody's
    done.finally(settle).then(resolve, reject);
  });
}

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
