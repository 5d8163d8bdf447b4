import type { GraphicsAdapter } from "../../../native/bindings.js";
import type { SessionOptions } from "../session/options.js";
import type { SessionPorts } from "../session/sessions.js";

// Messages between a runtime and its child process. The parent sends one request at a time; the child says that it has
// begun, then replies. Values of few bytes travel in these messages; those of large tensors and models travel before the
// message that needs them, in parts.

/** Part of a sequence of bytes. */
export interface BytesMessage {
  readonly type: "bytes";
  /** Number of the sequence, chosen by its sender. */
  readonly id: number;
  /** Length of the whole sequence. */
  readonly total: number;
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** Bytes of float32 values; or the number under which they were sent before. */
export type SentValues = Uint8Array | number;

/** Value of one input. */
export type SentFeed =
  | {
      readonly values: SentValues;
      readonly shape: readonly number[];
      /** Whether the values sent before are for later requests too. */
      readonly keep: boolean;
    }
  | { readonly int64: readonly number[]; readonly shape: readonly number[] };

/** One output. */
export interface SentOutput {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: SentValues;
}

/** A model sent before under a number, or in a file, beside which the files of its weights lie. */
export type SentModel = number | { readonly path: string };

export interface CreateRequest {
  readonly type: "create";
  readonly session: number;
  readonly model: SentModel;
  readonly options: SessionOptions;
}

/** A session that runs before another one; its output NAME is the other's input `NAME.N` for stage N. */
export interface StageRequest {
  readonly session: number;
  readonly feeds: Readonly<Record<string, SentFeed>>;
}

export interface RunRequest extends StageRequest {
  readonly type: "run";
  readonly stages: readonly StageRequest[];
  /** Names of outputs to compute; all if absent. */
  readonly outputs?: readonly string[];
}

export type Request =
  | { readonly type: "adapters" }
  | CreateRequest
  | { readonly type: "release"; readonly session: number }
  | { readonly type: "forget"; readonly values: readonly number[] }
  | RunRequest;

export type ToChild = Request | BytesMessage;

/** First message of the child. */
export interface Ready {
  readonly type: "ready";
  /** Version of onnxruntime-node. */
  readonly version: string;
  /** Execution providers that this build of ONNX Runtime knows; their libraries may be absent. */
  readonly backends: readonly string[];
}

export type Reply =
  | { readonly type: "done" }
  | { readonly type: "adapters"; readonly adapters: readonly GraphicsAdapter[] }
  | { readonly type: "created"; readonly ports: SessionPorts }
  | { readonly type: "result"; readonly outputs: readonly SentOutput[] }
  | { readonly type: "failed"; readonly message: string };

export type ToParent =
  | Ready
  | { readonly type: "unavailable"; readonly isMissing: boolean; readonly message: string }
  | { readonly type: "begun" }
  | Reply
  | BytesMessage;

/** Most bytes of values in one message: the event loops of both sides turn in between. */
export const PART_BYTES = 2 ** 18;

/** Sends a sequence of bytes, each part when the one before has left. */
export async function sendBytes(
  id: number,
  bytes: Uint8Array,
  send: (message: BytesMessage) => Promise<void>,
): Promise<void> {
  const total = bytes.length;
  let offset = 0;
  do {
    const part = bytes.subarray(offset, offset + PART_BYTES);
    await send({ type: "bytes", id, total, offset, bytes: part });
    offset += PART_BYTES;
  } while (offset < total);
}

/** Sequences of bytes that have arrived, whole or in part. */
export class ReceivedBytes {
  readonly #buffers = new Map<number, ArrayBuffer>();
  readonly #allocate: (bytes: number) => ArrayBuffer;

  constructor(allocate: (bytes: number) => ArrayBuffer) {
    this.#allocate = allocate;
  }

  add({ id, total, offset, bytes }: BytesMessage): void {
    let buffer = this.#buffers.get(id);
    if (buffer === undefined) {
      buffer = this.#allocate(total);
      this.#buffers.set(id, buffer);
    }
    new Uint8Array(buffer).set(bytes, offset);
  }

  /** Bytes of a whole sequence; they stay until they are dropped. */
  get(id: number): ArrayBuffer {
    const buffer = this.#buffers.get(id);
    if (buffer === undefined) throw new Error(`bytes ${id} were not sent`);
    return buffer;
  }

  drop(id: number): void {
    this.#buffers.delete(id);
  }
}

/** The bytes of an array of numbers, in the same memory. */
export const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
