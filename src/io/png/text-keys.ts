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
