/** A chunk of a PNG file. */
export interface Chunk {
  type: string;
  data: Buffer;
}

/** The chunks of a PNG file in order, read without the library under test. */
export function pngChunks(file: Buffer): Chunk[] {
  const chunks: Chunk[] = [];
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    chunks.push({ type: file.toString("latin1", at + 4, at + 8), data: file.subarray(at + 8, at + 8 + length) });
    at += 12 + length;
  }
  return chunks;
}

/** Key and value of each tEXt chunk, in order. */
export const pngText = (file: Buffer): [string, string][] =>
  pngChunks(file)
    .filter(({ type }) => type === "tEXt")
    .map(({ data }) => {
      const end = data.indexOf(0);
      return [data.toString("latin1", 0, end), data.toString("latin1", end + 1)];
    });
