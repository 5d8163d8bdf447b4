import { randomBytes } from "node:crypto";
import { promises, unlink } from "node:fs";
import { join } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import type { OutputFiles } from "./output-files.js";
import { type Ending, makeFolder } from "./output-path.js";
import { type Disk, freeDisk, TEMPORARY_SUFFIX, writeAppending, writeLinked, writeReplacing } from "./write-file.js";

/** Facts that the names of one item's files follow from, as data that can be sent to a thread. */
export interface ItemNames {
  /** Id of the batch: 12 hexadecimal digits. */
  readonly batch: string;
  /** Position of the item in the journal, from 0. */
  readonly position: number;
  /** Number in its names, from 1. */
  readonly number: number;
  /** The file part of the names, with {prefix} for the node's own; `{prefix}_00007` where absent. */
  readonly name?: string;
  /** The temporary files stay until the item is settled: there is a journal to go on from after a kill. */
  readonly isKept: boolean;
  /** Paths of files that an earlier run wrote for the item: what is in them already is not written twice. */
  readonly own?: readonly string[];
}

/** A published file and the second link to it, which proves whose it is until the journal has the item as finished. */
export interface WrittenFile {
  readonly path: string;
  readonly temporary: string;
}

const START = ".latentkit-";

/** Makes the names of temporary files differ from other threads', and from those that a kill left. */
const unique = uniqueDigits();

function* uniqueDigits(): Generator<string, never> {
  const thread = randomBytes(8).toString("hex");
  for (let count = 0; ; count++) yield thread + count.toString(16);
}

/** Start of the names of an item's temporary files. */
const temporaryStart = (batch: string, position: number): string => `${START}${batch}-${position}-`;

/** Marks temporary files that prove nothing: a file they were linked to may hold other items' texts by now. */
const NO_PROOF = "x";

/** Batch and item of a temporary file, and whether a file it is linked to is the item's; undefined for any other file. */
export function readTemporary(name: string): { batch: string; position: number; isProof: boolean } | undefined {
  const parts = /^\.latentkit-([0-9a-f]{12})-(\d{1,15})-(x?)[0-9a-f]+\.tmp$/.exec(name);
  return parts === null ? undefined : { batch: parts[1]!, position: Number(parts[2]), isProof: parts[3] === "" };
}

/** Start of an item's names, with at least five digits, as counters have. */
export const itemStem = ({ number, name }: Pick<ItemNames, "number" | "name">, prefix: string): string =>
  name === undefined ? `${prefix}_${String(number).padStart(5, "0")}` : name.replaceAll("{prefix}", () => prefix);

/**
 * Writes files under names that follow from an item of a batch, not from the content of a folder: `fox_00007.png`,
 * further images of the item `fox_00007-2.png` and so on, and past names that others have taken. Where they are kept, the
 * temporary files stay as second links: after a kill they prove which of the published files are this batch's.
 *
 * Texts have names of their own, and others may append to them: they wait until `commit`, so that an item that fails, or
 * is tried again, adds nothing.
 */
export class ItemFiles implements OutputFiles {
  readonly written: WrittenFile[] = [];
  readonly makeFolder = makeFolder;
  private readonly next = new Map<string, number>();
  private readonly waiting: (() => Promise<void>)[] = [];
  private isClosed = false;
  private readonly own: Set<string>;

  constructor(
    private readonly names: ItemNames,
    private readonly disk: Disk = freeDisk,
  ) {
    this.own = new Set(names.own);
  }

  async writeNumbered(folder: string, prefix: string, ending: Ending, bytes: Uint8Array): Promise<string> {
    const stem = itemStem(this.names, prefix);
    const key = join(folder, stem + ending);
    const first = this.next.get(key) ?? 1;
    let taken = first;
    const filename = await this.writeNew(folder, bytes, (attempt) => {
      taken = first + attempt;
      return `${stem}${taken === 1 ? "" : `-${taken}`}${ending}`;
    });
    this.next.set(key, taken + 1);
    return filename;
  }

  async writeNew(folder: string, bytes: Uint8Array, nameAt: (attempt: number) => string): Promise<string> {
    const own = await this.findOwn(folder, bytes, nameAt);
    if (own !== undefined) return own;
    const start = temporaryStart(this.names.batch, this.names.position);
    const temporary = join(folder, `${start}${unique.next().value}${TEMPORARY_SUFFIX}`);
    const filename = await writeLinked(folder, bytes, temporary, nameAt, this.disk);
    if (!this.names.isKept) await this.disk.rm(temporary, { force: true });
    const written = { path: join(folder, filename), temporary };
    if (this.isClosed) {
      await discardFiles([written]);
      throw new LatentkitError("run.interrupted", `The item was given up: ${JSON.stringify(filename)} comes too late.`);
    }
    this.written.push(written);
    return filename;
  }

  /** Ends the item: a node that does not listen to the abort leaves no file any more. */
  close(): void {
    this.isClosed = true;
  }

  async writeReplacing(folder: string, name: string, bytes: Uint8Array): Promise<void> {
    this.waiting.push(() => writeReplacing(folder, name, bytes, this.disk, this.mark));
  }

  async writeAppending(folder: string, name: string, bytes: Uint8Array): Promise<void> {
    if (this.own.has(join(folder, name))) return;
    this.waiting.push(() => writeAppending(folder, name, bytes, this.disk, this.mark));
  }

  /** Writes what waits, in order. Fails with file.write-failed; what was written before that stays. */
  async commit(): Promise<void> {
    for (const write of this.waiting.splice(0)) await write();
  }

  /**
   * The first of these names that an earlier run gave a file of this item, where it holds these bytes; one that a power
   * failure has cut gets them again.
   */
  private async findOwn(
    folder: string,
    bytes: Uint8Array,
    nameAt: (attempt: number) => string,
  ): Promise<string | undefined> {
    for (let attempt = 0; attempt <= this.own.size && this.own.size > 0; attempt++) {
      const path = join(folder, nameAt(attempt));
      if (!this.own.has(path)) continue;
      const content = await promises.readFile(path);
      const isSame = content.equals(bytes);
      if (!isSame && !isCutShort(content, bytes)) continue;
      if (!isSame) await writeReplacing(folder, nameAt(attempt), bytes, this.disk, this.mark);
      this.own.delete(path);
      return nameAt(attempt);
    }
    return undefined;
  }

  private get mark(): string {
    return temporaryStart(this.names.batch, this.names.position).slice(START.length) + NO_PROOF;
  }
}

/** Whether a file holds a beginning of the bytes, and zeros where a file system had no time for the rest. */
function isCutShort(content: Uint8Array, bytes: Uint8Array): boolean {
  let length = content.length;
  while (length > 0 && content[length - 1] === 0) length--;
  return content.length <= bytes.length && Buffer.compare(content.subarray(0, length), bytes.subarray(0, length)) === 0;
}

/** Removes the second links of an item that the journal has as finished: its files need no proof any more. */
export async function settleFiles(written: readonly WrittenFile[]): Promise<void> {
  for (const { temporary } of written) await remove(temporary);
}

/** Removes a file without the stat that Node's rm makes first, and without the cost of its promises. */
function remove(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    unlink(path, (error) => (error === null || error.code === "ENOENT" ? resolve() : reject(error)));
  });
}

/** Removes all files of an item that did not come to its end. */
export async function discardFiles(written: readonly WrittenFile[]): Promise<void> {
  for (const { path, temporary } of written) {
    await remove(path);
    await remove(temporary);
  }
}
