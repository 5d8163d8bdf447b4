import { promises } from "node:fs";
import { resolve } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import { CHECKED_LATER, checkOptions, FUNCTION, type OptionRules, TEXT } from "../../base/options.js";
import { packageVersion } from "../../base/package.js";
import { writeFailed } from "../../io/files/write-file.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import { checkSocket } from "../../nodes/sockets.js";
import type { Entry } from "../memory/cache.js";
import { type DiskSigner, readChange } from "../memory/signature.js";
import type { PreparedNode } from "../prepared.js";
import { Bound, entryPath, readEntryFile, remove, writeEntryFile } from "./entry-files.js";
import { decodeEntry, encodeEntry, HASH_BYTES, type Outputs } from "./entry-format.js";

const DEFAULT_BYTES = 4 * 2 ** 30;
/** Larger results are computed again: a single read could not hold them. */
const MAX_ENTRY_BYTES = 2 ** 30;
/** Bytes of results that wait in memory to be written; results beyond that are not stored. */
const MAX_PENDING_BYTES = 2 ** 28;
/** Pause after a write that failed. */
const PAUSE_MS = 60_000;
/**
 * Reading and checking an entry costs some tenths of a millisecond, plus about a millisecond per megabyte. Results that
 * are computed as fast are not stored.
 */
const MIN_MS = 2;
const MIN_MS_PER_BYTE = 2 / 1e6;

// Before a run, the cached results nearest to its outputs are found; only the nodes that lack one are computed.
// Results of less than 2 ms, or 2 ms a megabyte, are not kept: reading and checking costs as much.
/** Options of `createDiskCache`. */
export interface DiskCacheOptions {
  /** Made when the first result is stored. Several processes and threads may share it. */
  readonly folder: string;
  /** Bytes beyond which the least recently used entries are evicted; 4 GiB if absent. */
  readonly bytes?: number;
  /** Results that took less to compute are not stored; 2 ms, and 2 ms for each megabyte, if absent. */
  readonly minMs?: number;
  /** Version that results belong to: those of other versions are not used. The package's version if absent. */
  readonly engine?: string;
  /** Clock in milliseconds since 1970, to compare with the times of files. */
  readonly now?: () => number;
}

const DISK_CACHE_RULES: OptionRules<DiskCacheOptions> = {
  folder: CHECKED_LATER,
  bytes: CHECKED_LATER,
  minMs: CHECKED_LATER,
  engine: TEXT,
  now: FUNCTION,
};

/**
 * Makes a cache of results in a folder, for runs in any number of processes: equal nodes with equal inputs are computed
 * once. Results with models or other live objects, cheap ones, and those of nodes with side effects or with code that may
 * change are not stored. Anyone who can write to the folder can replace results. Fails with value.invalid.
 */
export function createDiskCache(options: DiskCacheOptions): DiskCache {
  checkOptions("createDiskCache", options, DISK_CACHE_RULES);
  const { folder, bytes = DEFAULT_BYTES, minMs } = options;
  if (typeof folder !== "string" || folder === "" || folder.includes("\0")) {
    throw new LatentkitError("value.invalid", `Disk cache: expected a folder, received ${describe(folder)}.`);
  }
  if (typeof bytes !== "number" || !(bytes >= 0)) {
    const message = `Disk cache size: expected a number of bytes from 0, received ${describe(bytes)}.`;
    throw new LatentkitError("value.invalid", message);
  }
  if (minMs !== undefined && !(typeof minMs === "number" && minMs >= 0)) {
    const message = `Disk cache minMs: expected a number of milliseconds from 0, received ${describe(minMs)}.`;
    throw new LatentkitError("value.invalid", message);
  }
  return new DiskCache(resolve(folder), bytes, options.engine ?? packageVersion(), minMs, options.now ?? Date.now);
}

/** Results by signature in files. Methods never reject: a failing disk acts as an empty cache. */
export class DiskCache {
  readonly #bound: Bound;
  readonly #writing = new Set<Promise<void>>();
  #pendingBytes = 0;
  #pausedUntil = 0;
  #warning: string | undefined;
  #hasWarned = false;
  readonly #minMs: number | undefined;
  readonly #now: () => number;

  /** @internal Made by `createDiskCache`. */
  constructor(
    readonly folder: string,
    readonly bytes: number,
    /** @internal */
    readonly packageVersion: string,
    minMs: number | undefined,
    now: () => number,
  ) {
    this.#minMs = minMs;
    this.#now = now;
    this.#bound = new Bound(folder, bytes, now);
  }

  /** @internal Whether there is an entry, which may be damaged. */
  has(signature: string): Promise<boolean> {
    return promises.access(entryPath(this.folder, signature)).then(
      () => true,
      () => false,
    );
  }

  /** @internal Reads the outputs of a signature, if `fits` accepts them. An entry that is invalid is removed. */
  async read(signature: string, fits: (outputs: Outputs) => boolean): Promise<Outputs | undefined> {
    const path = entryPath(this.folder, signature);
    const bytes = await readEntryFile(path, this.#maxEntryBytes);
    if (bytes === "absent") return undefined;
    const outputs = bytes === "damaged" ? undefined : decodeEntry(bytes, signature);
    if (outputs !== undefined && fits(outputs)) return outputs;
    await remove(path);
    return undefined;
  }

  /** @internal Begins to write outputs that took `ms` to compute, if storing them pays. */
  write(signature: string, outputs: Outputs, ms: number): void {
    if (ms < (this.#minMs ?? MIN_MS) || this.#now() < this.#pausedUntil) return;
    const parts = encodeEntry(signature, outputs);
    if (parts === undefined) return;
    const bytes = parts.reduce((sum, { length }) => sum + length, HASH_BYTES);
    if (this.#minMs === undefined && ms < bytes * MIN_MS_PER_BYTE) return;
    if (bytes > this.#maxEntryBytes || this.#pendingBytes + bytes > MAX_PENDING_BYTES) return;
    this.#pendingBytes += bytes;
    const written = this.#writeParts(signature, parts, bytes).finally(() => {
      this.#pendingBytes -= bytes;
      this.#writing.delete(written);
    });
    this.#writing.add(written);
  }

  /** @internal Resolves when all results so far are written. */
  async written(): Promise<void> {
    await Promise.all(this.#writing);
  }

  /** Resolves when nothing is being written or evicted. */
  async idle(): Promise<void> {
    await this.written();
    await this.#bound.idle();
  }

  /** @internal Returns once why results cannot be stored. */
  takeWarning(): string | undefined {
    const warning = this.#warning;
    this.#warning = undefined;
    return warning;
  }

  get #maxEntryBytes(): number {
    return Math.min(this.bytes, MAX_ENTRY_BYTES);
  }

  async #writeParts(signature: string, parts: readonly Uint8Array[], bytes: number): Promise<void> {
    try {
      await writeEntryFile(this.folder, entryPath(this.folder, signature), parts);
      this.#bound.add(bytes);
    } catch (error) {
      // if an open file cannot be replaced, another process has written the same result
      if (await this.has(signature)) return;
      this.#pausedUntil = this.#now() + PAUSE_MS;
      if (this.#hasWarned) return;
      this.#hasWarned = true;
      this.#warning = `Results are not stored in the disk cache: ${writeFailed(this.folder, error).message}`;
    }
  }
}

/** Results of one run in a disk cache: those that it reads, and those that it writes. */
export class RunResults {
  readonly #expected = new Set<string>();
  readonly #checked = new Set<string>();
  readonly #missed = new Set<string>();
  readonly #disk: DiskCache;
  readonly #signer: DiskSigner;
  readonly #nodes: ReadonlyMap<string, PreparedNode>;
  readonly #choiceContext: ChoiceContext;

  constructor(
    disk: DiskCache,
    signer: DiskSigner,
    nodes: ReadonlyMap<string, PreparedNode>,
    choiceContext: ChoiceContext,
  ) {
    this.#disk = disk;
    this.#signer = signer;
    this.#nodes = nodes;
    this.#choiceContext = choiceContext;
  }

  /** Whether the node's result was on the disk when checked, so that its sources need not be computed. */
  isExpected(id: string): boolean {
    return this.#expected.has(id);
  }

  /**
   * Checks for results of these nodes and, if they have none, of their sources, except through lazy links. `hasResult`:
   * the run has the node's result already.
   */
  async expect(ids: Iterable<string>, hasResult: (id: string) => boolean): Promise<void> {
    let level = [...new Set(ids)];
    while (level.length > 0) {
      const fresh = level.filter((id) => !this.#checked.has(id) && !hasResult(id));
      for (const id of fresh) this.#checked.add(id);
      const isStored = await Promise.all(fresh.map((id) => this.#has(id)));
      const sources = new Set<string>();
      for (const [i, id] of fresh.entries()) {
        if (isStored[i]) this.#expected.add(id);
        else for (const { spec, source } of this.#nodes.get(id)!.links) if (!spec.lazy) sources.add(source);
      }
      level = [...sources];
    }
  }

  /** Reads the node's result; a missing one is no longer expected. */
  async find(id: string): Promise<Entry | undefined> {
    const signature = this.#missed.has(id) ? undefined : this.#signer.storable(id);
    if (signature === undefined) return undefined;
    const { definition } = this.#nodes.get(id)!;
    const outputs = await this.#disk.read(signature, (values) => fits(definition, values));
    if (outputs !== undefined) return { outputs };
    this.#missed.add(id);
    this.#expected.delete(id);
    return undefined;
  }

  /**
   * Begins to write the result of a node that ran for `ms`, unless it has more than outputs: a result with warnings is computed
   * again, so that every run warns.
   */
  async store(node: PreparedNode, { outputs, ui, skipped, warnings }: Entry, ms: number): Promise<void> {
    const { id, definition } = node;
    // a file that the node read may have changed since it was signed
    if (definition.isChanged !== undefined) this.#signer.confirm(id, await readChange(node, this.#choiceContext));
    const signature = this.#signer.storable(id);
    if (
      signature === undefined ||
      ui !== undefined ||
      skipped === true ||
      warnings !== undefined ||
      !fits(definition, outputs)
    )
      return;
    this.#disk.write(signature, outputs, ms);
  }

  /** Waits until everything is written. Returns once why it could not be. */
  async written(): Promise<string | undefined> {
    await this.#disk.written();
    return this.#disk.takeWarning();
  }

  async #has(id: string): Promise<boolean> {
    const signature = this.#signer.storable(id);
    return signature !== undefined && (await this.#disk.has(signature));
  }
}

const SCALARS: Readonly<Record<string, readonly string[]>> = {
  INT: ["number", "bigint"],
  FLOAT: ["number"],
  STRING: ["string"],
  BOOLEAN: ["boolean"],
};

/** Whether the values have the types that the node declares. */
function fits({ key, outputs: specs }: NodeDefinition, outputs: Outputs): boolean {
  if (outputs.length !== specs.length) return false;
  return specs.every(({ name, type, list }, slot) => {
    const values = outputs[slot]!;
    if (!list && values.length === 0) return false;
    return values.every((value) => isOf(type, value, { node: key, input: name }));
  });
}

function isOf(type: string, value: unknown, at: { node: string; input: string }): boolean {
  if (Object.hasOwn(SCALARS, type)) return SCALARS[type]!.includes(typeof value);
  try {
    checkSocket(type, value, at);
    return true;
  } catch (error) {
    if (error instanceof LatentkitError) return false;
    throw error;
  }
}
