import type { Conditioning } from "../host/types.js";
import type { Tensor } from "../tensor/tensor.js";

/** Entries with shared tensors and further options. */
export const withOptions = (entries: Conditioning, options: Readonly<Record<string, unknown>>): Conditioning =>
  entries.map(([tensor, own]) => [tensor, { ...own, ...options }]);

/** Entries with further latents for models that edit pictures to look at. */
export const withReferences = (entries: Conditioning, latents: readonly Tensor[]): Conditioning =>
  entries.map(([tensor, { reference_latents: before, ...own }]) => [
    tensor,
    { ...own, reference_latents: [...(Array.isArray(before) ? before : []), ...latents] },
  ]);
