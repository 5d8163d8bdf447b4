import { crc32 } from "node:zlib";

/** Signature and header of a PNG file: what no chunk may stand before. */
const HEADER_BYTES = 33;

/** Whether a text needs a chunk iTXt: tEXt holds Latin-1 alone. */
export const isInternational = (text: string): boolean => /[\u0100-\uffff]/.test(text);

/** A PNG file with texts in UTF-8 after its header, as chunks iTXt. */
export function withInternationalTexts(file: Buffer, texts: readonly (readonly [key: string, text: string])[]): Buffer {
  if (texts.length === 0) return file;
  const chunks = texts.map(([key, text]) => {
    // neither compressed nor translated
    const body = Buffer.concat([Buffer.from(`iTXt${key}\0\0\0\0\0`, "latin1"), Buffer.from(text, "utf8")]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(body.length - 4);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, check]);
  });
  const parts = [file.subarray(0, HEADER_BYTES), ...chunks, file.subarray(HEADER_BYTES)];
  // memory of its own, which may go to the pool of tensors; Buffer.concat takes that of short files from Node's
  const out = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(out, at);
  return out;
}
