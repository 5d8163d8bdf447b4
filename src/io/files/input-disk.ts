import { closeSync, openSync, promises, read, realpathSync, type Stats, statSync } from "node:fs";
import { promisify } from "node:util";

interface InputHandle {
  read(bytes: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
  close(): Promise<void>;
}

/** Calls that reading a file takes. */
export interface InputDisk {
  realpath(path: string): Promise<string>;
  stat(path: string): Promise<Stats>;
  open(path: string, flags: number): Promise<InputHandle>;
}

/** Leaves the thread free. */
export const freeInputDisk: InputDisk = promises;

const readOff = promisify(read);

// decision 264
/** For threads that only render: all calls block the thread, except reading itself, which may wait for a medium. */
export const blockingInputDisk: InputDisk = {
  realpath: async (path) => realpathSync.native(path),
  stat: async (path) => statSync(path),
  open: async (path, flags) => {
    const descriptor = openSync(path, flags);
    return {
      read: (bytes, offset, length, position) => readOff(descriptor, bytes, offset, length, position),
      close: async () => closeSync(descriptor),
    };
  },
};
