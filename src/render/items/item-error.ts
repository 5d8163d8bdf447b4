import { LatentkitError } from "../../errors.js";
import type { BatchItem, ItemOrigin, ItemValues } from "../batch/types.js";

/** A place in a file of items; `key` names the column. */
export interface ItemPlace {
  readonly file: string;
  readonly line: number;
  /** From 1. */
  readonly column?: number;
  readonly key?: string;
}

/** `items.csv, line 7, column 3 (5.seed): <what>`; `what` is a clause or ends with a full stop. */
export function itemError({ file, line, column, key }: ItemPlace, what: string, suggestion?: string): LatentkitError {
  const named = key === undefined || key === "" ? "" : ` (${key})`;
  const place = `${file}, line ${line}${column === undefined ? "" : `, column ${column}`}${named}`;
  const sentence = /[.?]$/.test(what) ? what : `${what}.`;
  return new LatentkitError("items.invalid", `${place}: ${sentence}`, { suggestion });
}

/** An item that could not be read. */
export const faultyItem = (origin: ItemOrigin, fault: LatentkitError, values: ItemValues = {}): BatchItem => ({
  values,
  origin,
  fault,
});

/** Why a file of items cannot be read at all. */
export function unreadable(file: string, error: unknown): LatentkitError {
  if (error instanceof LatentkitError) return error;
  const code = (error as NodeJS.ErrnoException | null)?.code ?? String(error);
  if (code === "ENOENT") {
    return new LatentkitError("file.not-found", `Items ${file}: there is no such file.`, {}, { cause: error });
  }
  return new LatentkitError("file.read-failed", `Items ${file} cannot be read (${code}).`, {}, { cause: error });
}
