/** Options of `encodePng`. */
export interface EncodePngOptions {
  /**
   * Compression: 0 stores, 1 is the fastest, 9 the smallest; 4 where absent. Levels 1 to 4 take 2 to 13 ms for a picture of
   * 1024 x 1024, 9 up to eight times what 4 takes; photographs gain nothing above 2.
   */
  level?: number;
  /**
   * Text chunks, in order before the pixels; pairs allow repeated keys. Keys have 1 … 79 characters of Latin-1. Texts in
   * Latin-1 are tEXt chunks, others iTXt chunks, which come first.
   */
  text?: Readonly<Record<string, string>> | readonly (readonly [string, string])[];
  /** Bits of a sample: 8, or 16 for a tensor times 65535, rounded. 8 where absent; samples that are numbers have their own. */
  bitDepth?: 8 | 16;
}

/** Options of `Tensor.toPng`. */
export interface TensorPngOptions extends EncodePngOptions {
  /** Picture of a batch, from 0; required where it has several. */
  index?: number;
}

/** Files from tensors and back, for which formats are needed, a layer above: src/io installs it. */
export interface PictureCodec<Tensor> {
  encode(pictures: Tensor, options: TensorPngOptions | undefined): Promise<Buffer>;
  decode(bytes: Uint8Array): Promise<Tensor>;
}
