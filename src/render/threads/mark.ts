/** Ids of nodes are short; of a longer one the start must do. */
const MOST_BYTES = 255;

/** Memory that a thread and its owner share: where a run is, readable also when the thread is gone. */
export const createMark = (): SharedArrayBuffer => new SharedArrayBuffer(1 + MOST_BYTES);

/** Leaves the id of the node that a run is at; "" for none. */
export function setMark(mark: SharedArrayBuffer, id: string): void {
  const bytes = Buffer.from(mark);
  bytes[0] = bytes.write(id, 1);
}

/** The id that was left; undefined for none. */
export function readMark(mark: SharedArrayBuffer): string | undefined {
  const bytes = Buffer.from(mark);
  return bytes[0] === 0 ? undefined : bytes.toString("utf8", 1, 1 + bytes[0]!);
}
