import type { Conditioning } from "../host/types.js";

/** Entries with shared tensors and further options. */
export const withOptions = (entries: Conditioning, options: Readonly<Record<string, unknown>>): Conditioning =>
  entries.map(([tensor, own]) => [tensor, { ...own, ...options }]);
