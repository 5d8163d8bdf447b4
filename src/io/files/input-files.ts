import { sha256 } from "../../base/bytes.js";
import { LatentkitError } from "../../base/errors.js";
import { download } from "../http/download.js";
import { blockingInputDisk, createInputHashes, readInputFile } from "./input-file.js";
import { type FilesByName, isAddress } from "./input-text.js";

/** Sources of a run's input files. */
export interface InputPlaces {
  readonly folder: string | undefined;
  /** Files at hand, which come before those of the folder. */
  readonly files?: FilesByName;
  /** Nothing may be downloaded. */
  readonly isOffline?: boolean;
  /** Downloads an address. Default: `download`. */
  readonly download?: typeof download;
  /** The calling thread only renders: it may wait for files. */
  readonly isBlocking?: boolean;
  /** Hashes will be asked for: each file is hashed as it is read. */
  readonly hashesReads?: boolean;
}

/** Limit of all downloads of one run. */
const MAX_BYTES = 512 * 2 ** 20;

/** The input files of one run, and the hashes of those that were read, for its receipt. */
export class InputFiles {
  readonly #downloads = new Map<string, Promise<Buffer>>();
  #bytes = 0;
  readonly #hashOf: (name: string) => Promise<string>;
  /** SHA-256 of the files as they were last read, by name. */
  readonly #readHashes = new Map<string, string>();
  readonly #places: InputPlaces;

  constructor(places: InputPlaces) {
    this.#places = places;
    const { folder = "", files } = places;
    this.#hashOf = createInputHashes(folder, files);
  }

  /**
   * Reads a file at hand, of a data: URL, an https: address or the input folder. `subject` names it in messages. Fails as
   * `readInputFile` and `download`, and with network.forbidden.
   */
  async read(name: string, subject?: string, signal?: AbortSignal): Promise<Buffer> {
    const { folder, files, isBlocking, hashesReads } = this.#places;
    const isGiven = files !== undefined && Object.hasOwn(files, name);
    if (isAddress(name) && !isGiven) return this.#load(name, subject, signal);
    if (folder === undefined) throw new LatentkitError("usage.invalid", "inputDir: expected a folder, received none.");
    const bytes = await readInputFile({ folder, name, subject, files }, isBlocking ? blockingInputDisk : undefined);
    if (hashesReads) this.#readHashes.set(name, sha256(bytes));
    return bytes;
  }

  /** SHA-256 of a file's bytes, in hex; undefined for an address not read yet. */
  async hash(name: string): Promise<string | undefined> {
    const isFile = !isAddress(name) || Object.hasOwn(this.#places.files ?? {}, name);
    if (isFile) return this.#readHashes.get(name) ?? this.#hashOf(name);
    const bytes = await this.#downloads.get(name)?.catch(() => undefined);
    return bytes && sha256(bytes);
  }

  #load(address: string, subject: string | undefined, signal: AbortSignal | undefined): Promise<Buffer> {
    const { isOffline, download: get = download } = this.#places;
    if (isOffline) {
      const message =
        "This run may not download files: set allowNetwork (allow_network in the configuration), or leave out --offline.";
      throw new LatentkitError("network.forbidden", message);
    }
    const started = this.#downloads.get(address);
    if (started !== undefined) return started;
    const loading = get(address, { subject, signal }).then((bytes) => {
      this.#bytes += bytes.length;
      if (this.#bytes <= MAX_BYTES) return bytes;
      const message = `${subject ?? "Download"}: expected at most ${MAX_BYTES} bytes of downloads in one run, received ${this.#bytes}.`;
      throw new LatentkitError("download.refused", message);
    });
    this.#downloads.set(address, loading);
    return loading;
  }
}
