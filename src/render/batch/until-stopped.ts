import { onAbort } from "../../abort.js";

/**
 * The same items, until a signal says that no more are wanted: a source that is slow, or never answers, keeps nobody
 * waiting then. `onStop` hears that the source was left before its end.
 */
export async function* untilStopped<T>(
  items: AsyncIterable<T>,
  signals: { readonly signal?: AbortSignal; readonly drain?: AbortSignal },
  onStop: () => void,
): AsyncGenerator<T, void, undefined> {
  const iterator = items[Symbol.asyncIterator]();
  let isStopped = false;
  let wake = () => {};
  const stop = () => {
    isStopped = true;
    wake();
  };
  // not a race with one promise for all items: that would keep a reaction of each
  const nextOrStop = () =>
    new Promise<IteratorResult<T> | undefined>((resolve, reject) => {
      wake = () => resolve(undefined);
      if (isStopped) wake();
      else iterator.next().then(resolve, reject);
    });
  const leaves = [onAbort(signals.signal, stop), onAbort(signals.drain, stop)];
  let isOver = false;
  try {
    for (;;) {
      const next = await nextOrStop();
      if (next === undefined) return onStop();
      if (next.done) {
        isOver = true;
        return;
      }
      yield next.value;
    }
  } catch (error) {
    isOver = true;
    throw error;
  } finally {
    for (const leave of leaves) leave();
    // one that still waits for its next item may never come back to end
    if (!isOver) void Promise.resolve(iterator.return?.()).catch(stop);
  }
}
