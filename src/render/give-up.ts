import { LatentkitError } from "../errors.js";
import type { OutputFiles } from "../io/output-files.js";

/** What a node has after an abort before it is waited for no longer. */
export const GRACE_MS = 2000;

/**
 * The same events, until a node has not listened to the signal for the grace: then it is left alone with what it does.
 * Answers whether the run came to its own end.
 */
export async function* untilGivenUp<Event>(
  events: AsyncGenerator<Event, void, undefined>,
  signal: AbortSignal | undefined,
  graceMs: number,
): AsyncGenerator<Event, boolean, undefined> {
  let isGivenUp = false;
  let wake = () => {};
  let timer: NodeJS.Timeout | undefined;
  const giveUp = () => {
    isGivenUp = true;
    wake();
  };
  const start = () => {
    timer = setTimeout(giveUp, graceMs);
  };
  const nextOrNone = () =>
    new Promise<IteratorResult<Event> | undefined>((resolve, reject) => {
      wake = () => resolve(undefined);
      if (isGivenUp) wake();
      else events.next().then(resolve, reject);
    });
  if (signal?.aborted) start();
  else signal?.addEventListener("abort", start, { once: true });
  try {
    for (;;) {
      const next = await nextOrNone();
      if (next === undefined) return false;
      if (next.done) return true;
      yield next.value;
    }
  } finally {
    signal?.removeEventListener("abort", start);
    clearTimeout(timer);
    // one that was left alone may never come back to end; what it throws then is nobody's
    const ended = events.return();
    if (isGivenUp) ended.catch(giveUp);
    else await ended;
  }
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
      writeImage: async (...given) => open().writeImage(...given),
      writeNew: async (...given) => open().writeNew(...given),
      writeReplacing: async (...given) => open().writeReplacing(...given),
      writeAppending: async (...given) => open().writeAppending(...given),
    },
    close: () => {
      isClosed = true;
    },
  };
}
