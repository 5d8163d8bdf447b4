const SHORT = 3;
const LONG = 4;

/** A TIFF file without compression, of one page for each list of samples; 16-bit integers, or float32. */
export function tiffFile(
  { width, height, channels }: { width: number; height: number; channels: number },
  ...pages: readonly (Uint16Array | Float32Array)[]
): Buffer {
  const parts: Buffer[] = [Buffer.from("II*\0\x08\0\0\0", "latin1")];
  let at = 8;
  for (const [index, samples] of pages.entries()) {
    const bits = 8 * samples.BYTES_PER_ELEMENT;
    const hasAlpha = channels % 2 === 0;
    const depths = Buffer.from(new Uint16Array(channels).fill(bits).buffer);
    const entries: (readonly [tag: number, type: number, count: number, value: number])[] = [
      [256, LONG, 1, width],
      [257, LONG, 1, height],
      [258, SHORT, channels, 0],
      [259, SHORT, 1, 1],
      [262, SHORT, 1, channels >= 3 ? 2 : 1],
      [273, LONG, 1, 0],
      [277, SHORT, 1, channels],
      [278, LONG, 1, height],
      [279, LONG, 1, samples.byteLength],
      [284, SHORT, 1, 1],
      ...(hasAlpha ? [[338, SHORT, 1, 2] as const] : []),
      [339, SHORT, 1, samples instanceof Float32Array ? 3 : 1],
    ];
    const directory = Buffer.alloc(2 + 12 * entries.length + 4);
    const depthsAt = at + directory.length;
    const samplesAt = depthsAt + depths.length + (depths.length % 4);
    const end = samplesAt + samples.byteLength + (samples.byteLength % 2);
    directory.writeUInt16LE(entries.length);
    for (const [row, [tag, type, count, value]] of entries.entries()) {
      const to = 2 + 12 * row;
      directory.writeUInt16LE(tag, to);
      directory.writeUInt16LE(type, to + 2);
      directory.writeUInt32LE(count, to + 4);
      const isInPlace = tag === 258 && channels <= 2;
      const pointer = tag === 273 ? samplesAt : tag === 258 ? (isInPlace ? bits * 0x10001 : depthsAt) : value;
      directory.writeUInt32LE(pointer, to + 8);
    }
    directory.writeUInt32LE(index + 1 < pages.length ? end : 0, directory.length - 4);
    const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
    const padding = Buffer.alloc(samplesAt - depthsAt - depths.length);
    parts.push(directory, depths, padding, bytes, Buffer.alloc(bytes.length % 2));
    at = end;
  }
  return Buffer.concat(parts);
}
