import { randomBytes } from "node:crypto";
import { promises, unlink } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { type OutputFiles, owned } from "./output-files.js";
import { type Ending, escapeFault, makeFolder, nameFault, refuse } from "./output-path.js";
import { type Disk, freeDisk, TEMPORARY_SUFFIX, writeAppending, writeLinked, writeReplacing } from "./write-file.js";

/** Parts of the names of one item's files, as data that can be sent to a thread. */
export interface ItemNames {
  /** Id of the batch: 12 hexadecimal digits. */
  readonly batch: string;
  /** Position of the item in the journal, from 0. */
  readonly position: number;
  /** Number in its names, from 1. */
  readonly number: number;
  /** The file part of the names, with {prefix} for the node's own; default: `{prefix}_00007`. */
  readonly name?: string;
  /** The temporary files stay until the item is settled: a journal will need them after a kill. */
  readonly isKept: boolean;
  /** Paths of files that an earlier run wrote for the item, whose content is not written twice. */
  readonly own?: readonly string[];
}

/** A published file and the second link to it, which proves whose it is until the journal records the item as finished. */
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

/** Name of the n-th image of an item. */
const numbered = (stem: string, n: number, ending: Ending): string => `${stem}${n === 1 ? "" : `-${n}`}${ending}`;

/**
 * Writes files under names that follow from an item of a batch, not from the content of a folder: `fox_00007.png`,
 * further images of the item `fox_00007-2.png` and so on, past names that are taken. With `isKept` the temporary files
 * stay as second links: after a kill they prove which of the published files are this batch's.
 *
 * Texts have names of their own, and several items may append to one: they wait until `commit`, so that an item that
 * fails, or is tried again, adds nothing.
 */
export class ItemFiles implements OutputFiles {
  readonly written: WrittenFile[] = [];
  readonly makeFolder = makeFolder;
  readonly #next = new Map<string, number>();
  readonly #waiting: (() => Promise<void>)[] = [];
  #isClosed = false;
  readonly #own: Set<string>;
  readonly #names: ItemNames;
  readonly #disk: Disk;

  constructor(names: ItemNames, disk: Disk = freeDisk) {
    this.#names = names;
    this.#disk = disk;
    this.#own = new Set(names.own);
  }

  async writeNumbered(folder: string, prefix: string, ending: Ending, bytes: Uint8Array): Promise<string> {
    const stem = itemStem(this.#names, prefix);
    const key = join(folder, stem + ending);
    const first = this.#next.get(key) ?? 1;
    let taken = first;
    const filename = await this.writeNew(folder, bytes, (attempt) => {
      taken = first + attempt;
      return numbered(stem, taken, ending);
    });
    this.#next.set(key, taken + 1);
    return filename;
  }

  async writeNew(folder: string, bytes: Uint8Array, nameAt: (attempt: number) => string): Promise<string> {
    const own = await this.#findOwn(folder, bytes, nameAt);
    if (own !== undefined) return own;
    const start = temporaryStart(this.#names.batch, this.#names.position);
    const temporary = join(folder, `${start}${unique.next().value}${TEMPORARY_SUFFIX}`);
    const filename = await writeLinked(folder, bytes, temporary, nameAt, this.#disk);
    if (!this.#names.isKept) await this.#disk.rm(temporary, { force: true });
    const written = { path: join(folder, filename), temporary };
    if (this.#isClosed) {
      await discardFiles([written]);
      throw new LatentkitError(
        "run.interrupted",
        `${JSON.stringify(filename)} was written after its item had ended, and was discarded.`,
      );
    }
    this.written.push(written);
    return filename;
  }

  /** Ends the item: a node that does not listen to the abort can no longer leave files. */
  close(): void {
    this.#isClosed = true;
  }

  async writeReplacing(folder: string, name: string, bytes: Uint8Array): Promise<void> {
    this.#waiting.push(() => writeReplacing(folder, name, bytes, this.#disk, this.#mark));
  }

  async writeAppending(folder: string, name: string, bytes: Uint8Array): Promise<void> {
    if (this.#own.has(join(folder, name))) return;
    this.#waiting.push(() => writeAppending(folder, name, bytes, this.#disk, this.#mark));
  }

  /** Writes what waits, in order. Fails with file.write-failed; what was written before that stays. */
  async commit(): Promise<void> {
    for (const write of this.#waiting.splice(0)) await write();
  }

  /**
   * The first of these names under which an earlier run wrote these bytes for this item; a file cut by a power failure is
   * written again.
   */
  async #findOwn(folder: string, bytes: Uint8Array, nameAt: (attempt: number) => string): Promise<string | undefined> {
    for (let attempt = 0; attempt <= this.#own.size && this.#own.size > 0; attempt++) {
      const path = join(folder, nameAt(attempt));
      if (!this.#own.has(path)) continue;
      const content = await promises.readFile(path);
      const isSame = content.equals(bytes);
      if (!isSame && !isCutShort(content, bytes)) continue;
      if (!isSame) await writeReplacing(folder, nameAt(attempt), bytes, this.#disk, this.#mark);
      this.#own.delete(path);
      return nameAt(attempt);
    }
    return undefined;
  }

  get #mark(): string {
    return temporaryStart(this.#names.batch, this.#names.position).slice(START.length) + NO_PROOF;
  }
}

/** Whether a file holds a beginning of the bytes, then nothing or the zeros of a file system that could not finish. */
function isCutShort(content: Uint8Array, bytes: Uint8Array): boolean {
  let length = content.length;
  while (length > 0 && content[length - 1] === 0) length--;
  return content.length <= bytes.length && Buffer.compare(content.subarray(0, length), bytes.subarray(0, length)) === 0;
}

/** Removes the second links of an item that the journal records as finished: its files no longer need a proof. */
export async function settleFiles(written: readonly WrittenFile[]): Promise<void> {
  for (const { temporary } of written) await remove(temporary);
}

/** Removes a file without the stat that Node's rm makes first, and without the cost of its promises. */
function remove(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    unlink(path, (error) => (error === null || error.code === "ENOENT" ? resolve() : reject(error)));
  });
}

/** Removes all files of an item that did not finish. */
export async function discardFiles(written: readonly WrittenFile[]): Promise<void> {
  for (const { path, temporary } of written) {
    await remove(path);
    await remove(temporary);
  }
}

/** Names that are tried for a node that counts its own files. */
const MOST_NAMES = 100;

/** Place of a write: paths relative to the output folder of the job, with "/". */
interface WriteFolder {
  /** The folder that no link may leave; "" for the output folder. */
  readonly root: string;
  readonly folder: string;
}

/** One write of an item as data that can be sent, apart from its bytes. */
export type CollectedWrite = WriteFolder & { readonly bytes: Uint8Array } & (
    | {
        readonly kind: "numbered";
        readonly prefix: string;
        readonly ending: Ending;
        /** Name in an empty folder, which the node was told. */
        readonly filename: string;
      }
    /** `names` to try, in order. */
    | { readonly kind: "new"; readonly names: readonly string[]; readonly filename: string }
    | { readonly kind: "replacing" | "appending"; readonly filename: string }
  );

// decisions: Workers return bytes and the batch publishes them
/** Keeps the writes of an item of a batch, for the process that publishes them; `ItemFiles` does so by `publish`. */
export class CollectedFiles implements OutputFiles {
  readonly keepsBytes = true;
  readonly writes: CollectedWrite[] = [];
  readonly #taken = new Set<string>();
  #root = "";
  readonly #names: Pick<ItemNames, "number" | "name">;
  readonly #outputDir: string;

  /** `outputDir`: the job's, absolute. */
  constructor(names: Pick<ItemNames, "number" | "name">, outputDir: string) {
    this.#names = names;
    this.#outputDir = outputDir;
  }

  async makeFolder(outputFolder: string): Promise<void> {
    this.#root = this.#below(resolve(outputFolder));
  }

  async writeNumbered(folder: string, prefix: string, ending: Ending, bytes: Uint8Array): Promise<string> {
    const stem = itemStem(this.#names, prefix);
    const filename = this.#take(folder, (attempt) => numbered(stem, attempt + 1, ending));
    this.writes.push({ ...this.#at(folder, bytes), kind: "numbered", prefix, ending, filename });
    return filename;
  }

  async writeNew(folder: string, bytes: Uint8Array, nameAt: (attempt: number) => string): Promise<string> {
    const names = Array.from({ length: MOST_NAMES }, (_, attempt) => nameAt(attempt));
    const filename = this.#take(folder, (attempt) => nameOf(names, attempt));
    this.writes.push({ ...this.#at(folder, bytes), kind: "new", names, filename });
    return filename;
  }

  async writeReplacing(folder: string, filename: string, bytes: Uint8Array): Promise<void> {
    this.writes.push({ ...this.#at(folder, bytes), kind: "replacing", filename });
  }

  async writeAppending(folder: string, filename: string, bytes: Uint8Array): Promise<void> {
    this.writes.push({ ...this.#at(folder, bytes), kind: "appending", filename });
  }

  #take(folder: string, nameAt: (attempt: number) => string): string {
    let attempt = 0;
    while (this.#taken.has(join(folder, nameAt(attempt)))) attempt++;
    this.#taken.add(join(folder, nameAt(attempt)));
    return nameAt(attempt);
  }

  #at(folder: string, bytes: Uint8Array): WriteFolder & { readonly bytes: Uint8Array } {
    return { root: this.#root, folder: this.#below(folder), bytes: owned(bytes) };
  }

  #below(folder: string): string {
    return relative(this.#outputDir, folder).split(sep).join("/");
  }
}

/**
 * Writes what was collected elsewhere, checked once more, under an item's names; texts wait until `commit`. Returns the path of each file by
 * the path that its node was told. Fails with path.outside and file.write-failed.
 */
export async function publish(
  writes: Iterable<CollectedWrite> | AsyncIterable<CollectedWrite>,
  outputDir: string,
  files: ItemFiles,
): Promise<ReadonlyMap<string, string>> {
  const paths = new Map<string, string>();
  for await (const write of writes) {
    for (const path of [write.root, write.folder]) refuse(escapeFault(path), path);
    const folder = join(outputDir, write.folder);
    const root = join(outputDir, write.root);
    await files.makeFolder(root, { folder, subfolder: relative(root, folder).split(sep).join("/"), name: "" });
    paths.set(join(folder, write.filename), join(folder, await publishOne(write, folder, files)));
  }
  return paths;
}

async function publishOne(write: CollectedWrite, folder: string, files: ItemFiles): Promise<string> {
  const { bytes, filename } = write;
  if (write.kind === "numbered") {
    refuse(nameFault(write.prefix), write.prefix);
    return files.writeNumbered(folder, write.prefix, write.ending, bytes);
  }
  if (write.kind === "new") {
    for (const name of write.names) refuse(nameFault(name), name);
    return files.writeNew(folder, bytes, (attempt) => nameOf(write.names, attempt));
  }
  refuse(nameFault(filename), filename);
  await (write.kind === "replacing"
    ? files.writeReplacing(folder, filename, bytes)
    : files.writeAppending(folder, filename, bytes));
  return filename;
}

function nameOf(names: readonly string[], attempt: number): string {
  const name = names[attempt];
  if (name !== undefined) return name;
  const message = `Cannot write ${JSON.stringify(names[0])}: this name and the next ${names.length - 1} numbered names are taken.`;
  throw new LatentkitError("file.write-failed", message);
}
