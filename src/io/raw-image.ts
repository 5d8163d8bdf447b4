/** Pixels of an image, rows from the top, samples interleaved: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. */
export interface RawImage {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly channels: number;
}
