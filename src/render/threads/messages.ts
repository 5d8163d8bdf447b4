import type { MessagePort } from "node:worker_threads";
import type { SentError } from "../../base/sent-error.js";
import type { RunEvent } from "../../graph/events.js";
import type { Job } from "../../graph/job.js";
import type { ModelSettings } from "../../host/checkpoint/settings.js";
import type { FilesByName } from "../../io/files/input-text.js";
import type { CollectedWrite, ItemNames, WrittenFile } from "../../io/files/item-files.js";
import type { RunOutcome } from "../result.js";

/** Facts that a rendering thread is started with; the disk cache's folder is absolute. */
export interface ThreadData extends Readonly<Pick<Job, "cacheDir">> {
  /** Address of the setup module. */
  readonly setup?: string;
  readonly cacheBytes: number;
  /** Models to render with, and the port to the thread that runs their networks. */
  readonly models?: { readonly folders: ModelSettings["folders"]; readonly port: MessagePort };
  /** See `OutputHandling`. */
  readonly isBlocking: boolean;
}

/** An item of a batch, by its differences from the job that all items share. */
export interface RunnerItem extends Required<Pick<Job, "passing">> {
  /** Values that precede those of the job's `set`. */
  readonly values: NonNullable<Job["set"]>;
  readonly names: ItemNames;
  /** Nothing is written: the result has the writes, with paths below the job's output folder. */
  readonly isCollected?: boolean;
}

/** One run, as data that can be sent. */
export interface ThreadRun {
  /** "check" only finds out whether the graph can run with the setup's nodes, before any item of it does. */
  readonly type: "run" | "check";
  /** A path or JSON text; that of the message before if absent. */
  readonly graph?: string | Uint8Array;
  /** Text of `printJob`; that of the message before if absent. */
  readonly job?: string;
  /** Files of the job; those of the message before if absent, null for none. */
  readonly files?: FilesByName | null;
  /** The item of a batch that is rendered, its values as JSON, which keeps every digit; the job as it is if absent. */
  readonly item?: Omit<RunnerItem, "values"> & { readonly values: string };
  /** For a check: keys that items may set; anything if absent. */
  readonly keys?: readonly string[];
  /** Without a listener: only the result is sent, at the end. */
  readonly isQuiet?: boolean;
  /** Where a quiet run leaves the id of its current node, in case the thread is lost. */
  readonly mark?: SharedArrayBuffer;
}

/** Several runs may be in a thread at once; `id` distinguishes them. */
export type ToThread = { readonly id: number } & (ThreadRun | { readonly type: "abort" });

/** A result as data that can be sent: values that are not scalars, in words. */
export type SentResult = Omit<RunOutcome, "error"> & { readonly error?: SentError };

export type FromThread =
  | { readonly type: "loaded" }
  | ({ readonly id: number } & (
      | {
          /** A RunEvent, its errors as SentError and its values in words. */
          readonly type: "event";
          readonly event: RunEvent;
        }
      | {
          readonly type: "end";
          readonly written?: readonly WrittenFile[];
          /** Sent for a quiet run; for others it follows from the events. */
          readonly result?: SentResult;
          /** Sent for a run with its output in memory, whose bytes move to the owner. */
          readonly files?: RunOutcome["files"];
          /** Writes of an item that is collected, whose bytes move to the owner. */
          readonly collected?: readonly CollectedWrite[];
          /** Why a run that ended has failed after all. */
          readonly failure?: SentError;
        }
      | {
          /** Before anything was written; `isFatal`: the thread is useless. */
          readonly type: "refused";
          readonly error: SentError;
          readonly isFatal: boolean;
        }
    ));

/** Ids of nodes are short; a longer one is cut. */
const MOST_BYTES = 255;

/** Memory that a thread and its owner share: the node a run is at, readable even when the thread is gone. */
export const createMark = (): SharedArrayBuffer => new SharedArrayBuffer(1 + MOST_BYTES);

/** Leaves the id of the node that a run is at; "" for none. */
export function setMark(mark: SharedArrayBuffer, id: string): void {
  const bytes = Buffer.from(mark);
  bytes[0] = bytes.write(id, 1);
}

/** The id that was left; undefined for none. */
export function readMark(mark: SharedArrayBuffer): string | undefined {
  const bytes = Buffer.from(mark);
  return bytes[0] === 0 ? undefined : bytes.toString("utf8", 1, 1 + bytes[0]!);
}
