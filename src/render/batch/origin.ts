import { LatentkitError } from "../../errors.js";
import type { BatchItem } from "./types.js";

/** The error of an item with the place it was read from: file, line, and the column of the input that is wrong. */
export function withOrigin(error: LatentkitError, { origin }: BatchItem): LatentkitError {
  if (origin === undefined) return error;
  const { nodeId, input } = error.details;
  const key = `${nodeId}.${input}`;
  const column = origin.columns !== undefined && Object.hasOwn(origin.columns, key) ? origin.columns[key] : undefined;
  const place = column === undefined ? "" : `, column ${column}`;
  const message = `${origin.file}, line ${origin.line}${place}: ${error.message}`;
  return new LatentkitError(error.code, message, error.details, { cause: error });
}
