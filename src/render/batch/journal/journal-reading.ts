import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { createInterface } from "node:readline";
import { LatentkitError } from "../../../errors.js";
import { type JournalHeader, type JournalRecord, readRecord } from "./journal-records.js";

/** An "end" record is far shorter. */
const TAIL_BYTES = 1024;

/** Whether a journal's batch came to its end and no item failed: there is nothing to resume. False where there is none. */
export async function isFinished(path: string): Promise<boolean> {
  try {
    const last = (await tail(path)).trimEnd().split("\n").at(-1)!;
    const record = readRecord(last, path, 2);
    return record.type === "end" && record.failed === 0;
  } catch {
    // what is wrong with it is told by whoever opens it
    return false;
  }
}

async function tail(path: string): Promise<string> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    await file.read(buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString("utf8");
  } finally {
    await file.close();
  }
}

/** Files of the items that a journal has as finished, relative to the output folder, by the number of the item. */
export async function finishedFiles(path: string): Promise<Map<number, readonly string[]>> {
  const files = new Map<number, readonly string[]>();
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY });
  let number = 0;
  for await (const line of lines) {
    const record = recordOf(line, path, ++number);
    if (record?.type === "done") files.set(record.item, record.files);
  }
  return files;
}

/** Undefined for a line that a kill cut short. */
function recordOf(line: string, path: string, number: number): JournalHeader | JournalRecord | undefined {
  try {
    return readRecord(line, path, number);
  } catch (error) {
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}
