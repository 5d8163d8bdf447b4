import type { Readable } from "node:stream";
import { hasMethods, type Rule } from "../../../base/options.js";
import type { RunFile } from "../run.js";

/** Rule of an option that takes a file store. */
export const FILE_STORE: Rule = [
  "a store of files, as createS3Files makes one",
  (value) => hasMethods(value, "put", "open"),
];

/** A file of a run, opened for one reader. */
export interface OpenedFile {
  readonly size: number;
  readonly etag: string | undefined;
  readonly modified: Date;
  /** Reads `size` bytes: a file of this machine as often as it is called. The stream fails where the file has become shorter. */
  read(): Readable;
  close(): Promise<void>;
}

/** Keeper of the files that runs report. A service has one; every process that serves its runs must reach the same. */
export interface FileStore {
  /**
   * Stores a reported file before any reader learns of it, whole or not at all. Returns the file with the path under which
   * `open` finds it, which is committed with the run's events: a file that was never committed is never served. Fails with
   * file.write-failed, and with the reason of `signal`.
   */
  put(runId: string, file: RunFile, signal: AbortSignal): Promise<RunFile>;
  /** Opens a stored file; for `headOnly`, `read` is not called. Fails with HookError not_found or files_unavailable. */
  open(file: RunFile, options: { readonly headOnly: boolean }): Promise<OpenedFile>;
  /** Removes what a start of a run left on this machine; `attempt`: its number as its agent got it, 1 for the first. */
  tidy?(runId: string, attempt?: number): Promise<void>;
}
