/** Pixels of an image, rows from the top, samples interleaved: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. */
export interface RawImage {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  /** Bits of a sample, 8 or 16: 16 are two bytes in `data`, big-endian; 8 where absent. */
  readonly bitDepth?: number;
}
