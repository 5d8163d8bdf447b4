import { basename } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { type CollectedWrite, ItemFiles, publish } from "../../io/files/item-files.js";
import { type Attempt, failed } from "../../render/batch/runner.js";
import type { RunnerItem } from "../../render/threads/messages.js";
import type { FileStore } from "../hooks/files/file-store.js";
import { PackReader, type ReplyItem, readReply, reviveError } from "./batch-message.js";
import type { RunEnd } from "./batch-runs.js";

/** Time of a run: its start and end cost some milliseconds of the store, of the worker and of the batch. */
const RUN_MS = 500;
const MOST_ITEMS = 128;

/** An item that waits for its attempt. */
export interface Pending {
  readonly item: RunnerItem;
  readonly isAlone: boolean;
  readonly resolve: (attempt: Attempt) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Takes the items of one run, at most `share`: as many as take about half a second, and one as long as times are unknown.
 * `itemMs`: time of an item.
 */
export function takeChunk(
  pending: readonly Pending[],
  itemMs: number | undefined,
  share: number,
): { readonly chunk: readonly Pending[]; readonly rest: Pending[] } {
  const fitting = itemMs === undefined ? 1 : Math.round(RUN_MS / Math.max(itemMs, 1));
  const most = pending[0]?.isAlone ? 1 : Math.max(1, Math.min(fitting, share, MOST_ITEMS));
  const alone = pending.findIndex(({ isAlone }, at) => isAlone && at > 0);
  const count = alone === -1 ? most : Math.min(most, alone);
  return { chunk: pending.slice(0, count), rest: pending.slice(count) };
}

/**
 * Publishes what a run has rendered under the names of its items, each whole or not at all. Returns the mean time of an
 * item in ms. Rejects with store.unavailable if the bytes cannot be read.
 */
export async function publishReply(
  chunk: readonly Pending[],
  { response, pack }: RunEnd,
  outputDir: string,
  store: FileStore,
): Promise<number> {
  const replies = readReply(response ?? "{}");
  if (replies?.length !== chunk.length) {
    throw new LatentkitError("store.unavailable", "A worker sent an invalid response.");
  }
  const opened = pack && (await store.open(pack, { headOnly: false }).catch((cause) => unreadable(pack.path, cause)));
  const reader = opened && new PackReader(opened.read());
  const take = async (length: number): Promise<Uint8Array> => {
    if (length === 0) return new Uint8Array();
    if (reader === undefined) throw unreadable("the run's files", new Error("the run has none"));
    return reader.take(length).catch((cause) => unreadable(pack!.path, cause));
  };
  try {
    for (const [index, pending] of chunk.entries()) {
      pending.resolve(await publishItem(replies[index]!, pending, outputDir, take));
    }
  } finally {
    reader?.close();
    await opened?.close();
  }
  return replies.reduce((sum, { ms }) => sum + ms, 0) / replies.length;
}

async function publishItem(
  { status, warnings, leftOut, files, ms, error, writes }: ReplyItem,
  { item }: Pending,
  outputDir: string,
  take: (length: number) => Promise<Uint8Array>,
): Promise<Attempt> {
  if (status !== "success") {
    return { status, warnings, leftOut, files: [], ms, error: reviveError(error ?? {}), written: [] };
  }
  const own = new ItemFiles(item.names);
  try {
    const paths = await publish(unpack(writes, take), outputDir, own);
    await own.commit();
    const published = files.map((file) => {
      const path = paths.get(file.path) ?? file.path;
      return { ...file, path, filename: basename(path) };
    });
    return { status, warnings, leftOut, files: published, ms, written: own.written };
  } catch (error) {
    if (error instanceof LatentkitError && error.code === "store.unavailable") throw error;
    // the items after it are read from the end of its bytes
    return { ...failed(error, own.written), warnings };
  }
}

async function* unpack(
  writes: ReplyItem["writes"],
  take: (length: number) => Promise<Uint8Array>,
): AsyncGenerator<CollectedWrite> {
  let at = 0;
  try {
    for (const { length, ...write } of writes) {
      at++;
      yield { ...write, bytes: await take(length) } as CollectedWrite;
    }
  } finally {
    for (const { length } of writes.slice(at)) await take(length);
  }
}

function unreadable(path: string, cause: unknown): never {
  const reason = cause instanceof Error ? ` (${cause.message})` : "";
  const sentence = `Cannot read the files a worker rendered at ${JSON.stringify(path)}${reason}: batch and workers must share one output_dir at the same path, or the same "files" bucket.`;
  throw new LatentkitError("store.unavailable", sentence, {}, { cause });
}
