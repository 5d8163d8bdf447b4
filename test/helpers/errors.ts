import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";

/** Rejects with a LatentkitError of that code, whose message matches each pattern; returns it. */
export async function refuses(
  work: Promise<unknown> | (() => unknown),
  code: string | RegExp,
  ...patterns: RegExp[]
): Promise<LatentkitError> {
  let error: unknown;
  try {
    await (typeof work === "function" ? work() : work);
  } catch (caught) {
    error = caught;
  }
  assert.ok(error instanceof LatentkitError, `expected a LatentkitError, received ${String(error)}`);
  if (typeof code === "string") assert.equal(error.code, code, error.message);
  else assert.match(error.code, code, error.message);
  for (const pattern of patterns) assert.match(error.message, pattern);
  return error;
}

/** Asserts that work rejects with the signal's own reason. */
export async function rejectsAs(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => signal.aborted && error === signal.reason);
}

/** Events of a stream that throws the signal's own reason after the last. */
export async function eventsUntil<Event>(
  signal: AbortSignal,
  events: AsyncIterable<Event>,
  onEvent: (event: Event) => void = () => {},
): Promise<Event[]> {
  const seen: Event[] = [];
  const read = async () => {
    for await (const event of events) {
      seen.push(event);
      onEvent(event);
    }
  };
  await rejectsAs(signal, read());
  return seen;
}
