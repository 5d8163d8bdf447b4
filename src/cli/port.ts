import { LatentkitError } from "../base/errors.js";

/** Reads `--port`. Throws usage.invalid. */
export function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65535) return Number(text);
  throw new LatentkitError("usage.invalid", `--port: expected 0 to 65535, received ${JSON.stringify(text)}.`);
}
