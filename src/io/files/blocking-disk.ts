import {
  closeSync,
  fstatSync,
  fsync,
  ftruncateSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { promisify } from "node:util";
import type { Disk, OpenFile } from "./write-file.js";

/**
 * A disk for threads that only render: its calls block the thread, except fsync. A turn to Node's thread pool and back
 * costs more than each of them, and each picture takes six.
 */
export const blockingDisk: Disk = {
  open: async (path, flags) => new BlockingFile(openSync(path, flags)),
  link: async (from, to) => linkSync(from, to),
  rename: async (from, to) => renameSync(from, to),
  rm: async (path, options) => rmSync(path, options),
};

const waitForMedium = promisify(fsync);

class BlockingFile implements OpenFile {
  constructor(private readonly descriptor: number) {}

  sync(): Promise<void> {
    return waitForMedium(this.descriptor);
  }

  async writeFile(bytes: Uint8Array): Promise<void> {
    writeFileSync(this.descriptor, bytes);
  }

  async stat(): Promise<{ size: number }> {
    return fstatSync(this.descriptor);
  }

  async truncate(size: number): Promise<void> {
    ftruncateSync(this.descriptor, size);
  }

  async close(): Promise<void> {
    closeSync(this.descriptor);
  }
}
