import { promises } from "node:fs";
import { join } from "node:path";
import { ENTRY_NAME, TEMPORARY_NAME } from "./entry-file.js";

/** Size of the blocks that a file occupies. */
const BLOCK = 4096;
/** Share of the bound that eviction goes down to, so that the next write does not evict again. */
const TARGET = 0.9;
/** Other processes write too: the folder is scanned again after this share of the bound, and after this time. */
const SHARE_BETWEEN_SCANS = 1 / 64;
const MS_BETWEEN_SCANS = 600_000;
/** Age from which a temporary file is that of a killed process. */
const TEMPORARY_MS = 3_600_000;
/** Files inspected at the same time. */
const AT_ONCE = 16;

interface CachedFile {
  readonly path: string;
  readonly bytes: number;
  readonly usedAt: number;
}

// decisions 193, 194
/**
 * Keeps a folder of entries below a number of bytes by evicting the least recently used. Several processes may do so at
 * once: each counts what it wrote since its last scan, so each exceeds the bound by a 64th at most.
 */
export class Bound {
  private bytes = Number.POSITIVE_INFINITY;
  private written = 0;
  private scannedAt = 0;
  private sweeping: Promise<void> | undefined;

  constructor(
    private readonly folder: string,
    private readonly limit: number,
    private readonly now: () => number,
  ) {}

  /** Counts a written entry. */
  add(bytes: number): void {
    const size = inBlocks(bytes);
    this.bytes += size;
    this.written += size;
    const isDue = this.bytes > this.limit || this.hasWrittenMuch() || this.now() - this.scannedAt > MS_BETWEEN_SCANS;
    if (!isDue || this.sweeping !== undefined) return;
    this.sweeping = this.sweepAll().finally(() => {
      this.sweeping = undefined;
    });
  }

  /** Resolves when no eviction is running. */
  async idle(): Promise<void> {
    await this.sweeping;
  }

  private hasWrittenMuch(): boolean {
    return this.written > this.limit * SHARE_BETWEEN_SCANS;
  }

  private async sweepAll(): Promise<void> {
    do await this.sweep();
    while (this.hasWrittenMuch());
  }

  private async sweep(): Promise<void> {
    this.written = 0;
    this.scannedAt = this.now();
    const files = await this.scan();
    let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    if (total > this.limit) {
      files.sort((a, b) => a.usedAt - b.usedAt);
      for (const { path, bytes } of files) {
        if (total <= this.limit * TARGET) break;
        await remove(path);
        total -= bytes;
      }
    }
    // the scan may or may not have seen what was written meanwhile
    this.bytes = total + this.written;
  }

  private async scan(): Promise<CachedFile[]> {
    const files: CachedFile[] = [];
    for (const name of await namesIn(this.folder)) {
      if (TEMPORARY_NAME.test(name)) await this.removeStale(join(this.folder, name));
      if (!/^[0-9a-f]{2}$/.test(name)) continue;
      const shard = join(this.folder, name);
      const paths = (await namesIn(shard)).filter((entry) => ENTRY_NAME.test(entry)).map((entry) => join(shard, entry));
      for (let at = 0; at < paths.length; at += AT_ONCE) {
        for (const entry of await Promise.all(paths.slice(at, at + AT_ONCE).map(statOf))) if (entry) files.push(entry);
      }
    }
    return files;
  }

  private async removeStale(path: string): Promise<void> {
    const file = await statOf(path);
    if (file !== undefined && this.now() - file.usedAt > TEMPORARY_MS) await remove(path);
  }
}

const inBlocks = (bytes: number): number => Math.ceil(bytes / BLOCK) * BLOCK;

/** Another process may remove any file at any time, which is no error. */
const nothing = () => undefined;

const namesIn = (folder: string): Promise<string[]> => promises.readdir(folder).catch((): string[] => []);

/** Removes a file if it exists and can be removed. */
export const remove = (path: string): Promise<void> => promises.rm(path, { force: true }).catch(nothing);

async function statOf(path: string): Promise<CachedFile | undefined> {
  const stat = await promises.lstat(path).catch(nothing);
  return stat && { path, bytes: inBlocks(stat.size), usedAt: stat.mtimeMs };
}
