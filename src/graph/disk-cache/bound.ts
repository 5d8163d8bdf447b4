import { promises } from "node:fs";
import { join } from "node:path";
import { ENTRY_NAME, TEMPORARY_NAME } from "./entry-file.js";

/** A file takes whole blocks, however small it is. */
const BLOCK = 4096;
/** Eviction goes a little below the bound, or every write would bring the next one. */
const TARGET = 0.9;
/** Other processes write too: the folder is looked at anew after so large a share of the bound, and so long a time. */
const SHARE_BETWEEN_LOOKS = 1 / 64;
const MS_BETWEEN_LOOKS = 600_000;
/** What a killed process left; one that still writes is younger. */
const TEMPORARY_MS = 3_600_000;
/** Files looked at together. */
const AT_ONCE = 16;

interface Found {
  readonly path: string;
  readonly bytes: number;
  readonly usedAt: number;
}

/**
 * Keeps a folder of entries below so many bytes: the least recently used leave. Several processes may do so at once; each
 * counts what it wrote itself since it last looked, so together they exceed the bound by a 64th for each at most.
 */
export class Bound {
  private held = Number.POSITIVE_INFINITY;
  private written = 0;
  private lookedAt = 0;
  private sweeping: Promise<void> | undefined;

  constructor(
    private readonly folder: string,
    private readonly limit: number,
    private readonly now: () => number,
  ) {}

  /** An entry of so many bytes was written. */
  add(bytes: number): void {
    const size = inBlocks(bytes);
    this.held += size;
    this.written += size;
    const isDue = this.held > this.limit || this.hasWrittenMuch() || this.now() - this.lookedAt > MS_BETWEEN_LOOKS;
    if (!isDue || this.sweeping !== undefined) return;
    this.sweeping = this.sweepAll().finally(() => {
      this.sweeping = undefined;
    });
  }

  /** Resolves when no eviction is at work. */
  async idle(): Promise<void> {
    await this.sweeping;
  }

  private hasWrittenMuch(): boolean {
    return this.written > this.limit * SHARE_BETWEEN_LOOKS;
  }

  private async sweepAll(): Promise<void> {
    do await this.sweep();
    while (this.hasWrittenMuch());
  }

  private async sweep(): Promise<void> {
    this.written = 0;
    this.lookedAt = this.now();
    const found = await this.look();
    let held = found.reduce((sum, { bytes }) => sum + bytes, 0);
    if (held > this.limit) {
      found.sort((a, b) => a.usedAt - b.usedAt);
      for (const { path, bytes } of found) {
        if (held <= this.limit * TARGET) break;
        await remove(path);
        held -= bytes;
      }
    }
    // what was written meanwhile may or may not have been seen
    this.held = held + this.written;
  }

  private async look(): Promise<Found[]> {
    const found: Found[] = [];
    for (const name of await namesIn(this.folder)) {
      if (TEMPORARY_NAME.test(name)) await this.removeStale(join(this.folder, name));
      if (!/^[0-9a-f]{2}$/.test(name)) continue;
      const shard = join(this.folder, name);
      const paths = (await namesIn(shard)).filter((entry) => ENTRY_NAME.test(entry)).map((entry) => join(shard, entry));
      for (let at = 0; at < paths.length; at += AT_ONCE) {
        for (const entry of await Promise.all(paths.slice(at, at + AT_ONCE).map(statOf))) if (entry) found.push(entry);
      }
    }
    return found;
  }

  private async removeStale(path: string): Promise<void> {
    const found = await statOf(path);
    if (found !== undefined && this.now() - found.usedAt > TEMPORARY_MS) await remove(path);
  }
}

const inBlocks = (bytes: number): number => Math.ceil(bytes / BLOCK) * BLOCK;

/** Another process may take away at any time what this one has just seen; none of that is an error. */
const nothing = () => undefined;

const namesIn = (folder: string): Promise<string[]> => promises.readdir(folder).catch((): string[] => []);

/** Removes a file that may be gone; a folder, or what may not be removed, stays. */
export const remove = (path: string): Promise<void> => promises.rm(path, { force: true }).catch(nothing);

async function statOf(path: string): Promise<Found | undefined> {
  const stat = await promises.lstat(path).catch(nothing);
  return stat && { path, bytes: inBlocks(stat.size), usedAt: stat.mtimeMs };
}
