import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import { ERROR_CODES, type ErrorCode, type ErrorDetails, LatentkitError } from "../../base/errors.js";
import { packageVersion } from "../../base/package.js";
import type { CollectedWrite, ItemNames } from "../../io/files/item-files.js";
import type { Attempt } from "../../render/batch/runner.js";

// Message and response of a run that renders some items of a batch; both processes are of one version.

/** Name of the run's file with the bytes of all writes, one after the other. */
export const PACK_NAME = "items.pack";

/** Message of a run: items of one batch, which have graph and job in common. */
export interface BatchMessage {
  /** JSON text. */
  readonly graph: string;
  /** Text of `printJob`. */
  readonly job: string;
  readonly items: readonly MessageItem[];
}

export interface MessageItem {
  /** Values as JSON text, which keeps every digit. */
  readonly set: string;
  readonly passing: readonly string[];
  readonly names: ItemNames;
}

type WithoutBytes<T> = T extends unknown ? Omit<T, "bytes"> : never;
/** A write whose bytes are in the pack, behind those before it. */
type PackedWrite = WithoutBytes<CollectedWrite> & { readonly length: number };

/** One item of a response. Paths of `files` are those that the item's nodes were told. */
export interface ReplyItem extends Pick<Attempt, "status" | "files" | "warnings" | "leftOut"> {
  readonly ms: number;
  readonly error?: ReplyError;
  readonly writes: readonly PackedWrite[];
}

interface ReplyError {
  readonly code: string;
  readonly message: string;
  readonly details: ErrorDetails;
}

export const printMessage = (message: BatchMessage): string =>
  JSON.stringify({ latentkit: packageVersion(), ...message });

/** Reads a message. Throws config.invalid if another version of the package wrote it. */
export function readMessage(text: string): BatchMessage {
  const { latentkit, ...message } = JSON.parse(text) as BatchMessage & { readonly latentkit: string };
  if (latentkit === packageVersion()) return message;
  const sentence = `The worker runs latentkit ${packageVersion()} but the batch was started with ${latentkit}: use the same version for both.`;
  throw new LatentkitError("config.invalid", sentence);
}

export const printReply = (items: readonly ReplyItem[]): string => JSON.stringify({ items });

export const readReply = (text: string): readonly ReplyItem[] =>
  (JSON.parse(text) as { readonly items: readonly ReplyItem[] }).items;

/** An error as it was before it was sent. */
export function reviveError({ code, message, details = {} }: Partial<ReplyError>): LatentkitError {
  const isKnown = code !== undefined && Object.hasOwn(ERROR_CODES, code);
  return new LatentkitError(isKnown ? (code as ErrorCode) : "node.failed", message ?? "The run failed.", details);
}

/** The file that holds the bytes of a run's writes, one after the other; created with the first of them. */
export class PackWriter {
  #handle: FileHandle | undefined;

  constructor(readonly path: string) {}

  get isEmpty(): boolean {
    return this.#handle === undefined;
  }

  async add(writes: readonly CollectedWrite[]): Promise<PackedWrite[]> {
    const packed: PackedWrite[] = [];
    for (const { bytes, ...write } of writes) {
      if (this.#handle === undefined) {
        await mkdir(dirname(this.path), { recursive: true });
        this.#handle = await open(this.path, "wx");
      }
      await this.#handle.writeFile(bytes);
      packed.push({ ...write, length: bytes.length });
    }
    return packed;
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }
}

/** Reads a pack from its first byte to its last, a write at a time. */
export class PackReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);
  readonly #stream: Readable;

  constructor(stream: Readable) {
    this.#stream = stream;
    this.#chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** Reads the bytes of the next write. Rejects if the pack is too short or cannot be read. */
  async take(length: number): Promise<Uint8Array> {
    const parts: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      if (this.#rest.length === 0) {
        const { value, done } = await this.#chunks.next();
        if (done) throw new Error("the file is too short");
        this.#rest = value;
      }
      parts.push(this.#rest.subarray(0, missing));
      missing -= parts.at(-1)!.length;
      this.#rest = this.#rest.subarray(parts.at(-1)!.length);
    }
    return Buffer.concat(parts, length);
  }

  close(): void {
    this.#stream.destroy();
  }
}
