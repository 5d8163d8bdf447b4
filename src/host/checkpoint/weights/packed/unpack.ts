import { type FileHandle, mkdir, open, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { LatentkitError } from "../../../../base/errors.js";
import { openRegular } from "../../../../io/regular-file.js";
import { quotedName, readError, type StoredWeight } from "../stored.js";
import { conversionOf } from "./conversions.js";
import type { UnpackPlan } from "./packed-weights.js";

/** Bytes that are read before the event loop turns: it stands still for some milliseconds. */
const PART_BYTES = 2 ** 20;

/**
 * Writes the file of a plan, does some work with it, and removes it: processes that have mapped it keep it. Rejects with
 * file.read-failed and model.invalid for the model's file, with file.write-failed if the folder has no room for the
 * other, and as `work`.
 */
export async function withUnpacked<Result>(plan: UnpackPlan | undefined, work: () => Promise<Result>): Promise<Result> {
  if (plan === undefined) return work();
  try {
    await unpack(plan);
    return await work();
  } finally {
    await remove(plan.path);
  }
}

async function unpack(plan: UnpackPlan): Promise<void> {
  const folder = dirname(plan.path);
  const target = await writing(plan, async () => {
    await mkdir(folder, { recursive: true });
    await removeLeftOvers(folder);
    return open(plan.path, "wx", 0o600);
  });
  const sources = new Sources();
  try {
    for (const placed of plan.weights) await convert(plan, placed, sources, target);
  } finally {
    await sources.close();
    await target.close();
  }
}

async function convert(
  plan: UnpackPlan,
  { weight, form, starts }: UnpackPlan["weights"][number],
  sources: Sources,
  target: FileHandle,
): Promise<void> {
  const { source, units, bytes, outputs, open } = conversionOf(weight, form);
  const write = await open((tensor) => sources.read(tensor, 0, new Uint8Array(tensor.to - tensor.from)));
  const most = Math.max(1, Math.floor(PART_BYTES / bytes));
  const read = new Uint8Array(bytes * Math.min(most, units));
  const made = outputs.map((size) => new Uint8Array(size * Math.min(most, units)));
  // a part is read while the one before is written
  let written: Promise<void> = Promise.resolve();
  try {
    for (let first = 0; first < units; first += most) {
      const count = Math.min(most, units - first);
      const part = await sources.read(source, first * bytes, read.subarray(0, count * bytes));
      await written;
      const parts = made.map((whole, output) => whole.subarray(0, count * outputs[output]!));
      write(part, first, parts);
      written = writing(plan, async () => {
        for (const [output, bytesOfPart] of parts.entries())
          await writeAll(target, bytesOfPart, starts[output]! + first * outputs[output]!);
      });
      // awaited with the next part, or below
      written.catch(() => {});
    }
  } finally {
    await written;
  }
}

/** Model files that are open for reading. */
class Sources {
  readonly #handles = new Map<string, FileHandle>();

  /** Fills `bytes` with those of a tensor from `offset` on. */
  async read(tensor: StoredWeight, offset: number, bytes: Uint8Array): Promise<Uint8Array> {
    const { file, from } = tensor;
    const { length } = bytes;
    try {
      const handle = this.#handles.get(file) ?? (await openRegular(file));
      this.#handles.set(file, handle);
      for (let filled = 0; filled < length; ) {
        const { bytesRead } = await handle.read(bytes, filled, length - filled, from + offset + filled);
        if (bytesRead === 0) throw shorter(tensor);
        filled += bytesRead;
      }
      return bytes;
    } catch (error) {
      throw readError(basename(file), error);
    }
  }

  async close(): Promise<void> {
    for (const handle of this.#handles.values()) await handle.close();
  }
}

const shorter = ({ file, key }: StoredWeight): LatentkitError =>
  new LatentkitError(
    "model.invalid",
    `Model ${quotedName(basename(file))}: tensor ${quotedName(key)} is cut off: the file became shorter while it was read.`,
  );

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; )
    written += (await handle.write(bytes, written, bytes.length - written, position + written)).bytesWritten;
}

/** Work on the file of a plan, whose errors say how to find room for it. */
async function writing<Result>({ path, bytes }: UnpackPlan, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const gigabytes = (bytes / 1e9).toFixed(1);
    throw new LatentkitError(
      "file.write-failed",
      `Quantised weights cannot be unpacked in ${dirname(path)}: ${code}. Loading needs ${gigabytes} GB there: set LATENTKIT_CACHE_DIR to use another folder.`,
      {},
      { cause: error },
    );
  }
}

/** Removes a file. A mapped one goes at once too, except on Windows, where a later process removes it. */
const remove = (path: string): Promise<void> => rm(path, { force: true }).catch(() => {});

/** Removes files of processes that have ended. */
async function removeLeftOvers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, id] = /^(\d{1,10})-[\da-f-]{36}\.weights$/.exec(name) ?? [];
    if (id !== undefined && !isAlive(Number(id))) await remove(join(folder, name));
  }
}

function isAlive(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
