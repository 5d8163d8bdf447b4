import { ERROR_CODES, type ErrorCode, type ErrorDetails, LatentkitError } from "../../base/errors.js";
import { packageVersion } from "../../base/package.js";
import type { CollectedWrite } from "../../io/files/collected-files.js";
import type { ItemNames } from "../../io/files/item-files.js";
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
export type PackedWrite = WithoutBytes<CollectedWrite> & { readonly length: number };

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

/** Reads a message. Throws config.invalid where another version of the package wrote it. */
export function readMessage(text: string): BatchMessage {
  const { latentkit, ...message } = JSON.parse(text) as BatchMessage & { readonly latentkit: string };
  if (latentkit === packageVersion()) return message;
  const sentence = `The worker has latentkit ${packageVersion()}, and the batch ${latentkit}: a batch and its workers need one version.`;
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
