import { describe, LatentkitError } from "../../base/errors.js";

const SIGNATURE_BYTES = 8;
/** Bytes of a chunk besides its data: length and type before it, checksum after it. */
const CHUNK_BYTES = 12;
const TEXT_TYPES: ReadonlySet<string> = new Set(["tEXt", "zTXt", "iTXt"]);
const MAX_KEY_BYTES = 79;

/** Keys of the texts in a PNG file in order, repeated keys included. */
export function textKeys(file: Uint8Array): string[] {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const keys: string[] = [];
  for (let at = SIGNATURE_BYTES; at + CHUNK_BYTES <= bytes.length; at += CHUNK_BYTES + bytes.readUInt32BE(at)) {
    if (!TEXT_TYPES.has(bytes.toString("latin1", at + 4, at + 8))) continue;
    const key = bytes.toString("latin1", at + 8, at + 8 + MAX_KEY_BYTES + 1);
    keys.push(key.slice(0, Math.max(0, key.indexOf("\0"))));
  }
  return keys;
}

/** Pairs of texts for a file, checked: without NUL, under keys that `checkTextKey` takes. Fails with value.invalid. */
export function checkTexts(
  text: Readonly<Record<string, string>> | readonly (readonly [string, string])[],
): [string, string][] {
  const pairs = Array.isArray(text) ? (text as readonly (readonly [string, string])[]) : Object.entries(text);
  return pairs.map((pair) => {
    if (!Array.isArray(pair)) {
      throw new LatentkitError("value.invalid", `PNG text: expected pairs [key, text], received ${describe(pair)}.`);
    }
    const [key, value] = pair as readonly [string, string];
    checkTextKey(key);
    if (typeof value !== "string" || value.includes("\0")) {
      throw new LatentkitError(
        "value.invalid",
        `PNG text ${JSON.stringify(key)}: expected text without NUL, received ${describe(value)}.`,
      );
    }
    return [key, value];
  });
}

/** Throws value.invalid unless a key has 1 to 79 printable characters of Latin-1, as the format requires. */
export function checkTextKey(key: string): void {
  if (typeof key === "string" && /^[\u0020-\u007e\u00a0-\u00ff]{1,79}$/.test(key)) return;
  throw new LatentkitError(
    "value.invalid",
    `PNG text key: expected 1 to 79 printable Latin-1 characters, received ${describe(key)}.`,
  );
}
