import { describe, LatentkitError } from "../../../base/errors.js";
import { cycled } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning } from "../../types.js";
import { joinedTokens, type PatchSide, patchesOf } from "./patches.js";

/** Order of a patch's numbers. */
export const FLUX_PATCHES = "cells-of-channels";
/** Name of the label that holds the patches of references; the network has them after those of the latent. */
export const REFERENCES = "references";

/** References of an entry: latents in the VAE's units, and where they stand. */
export interface References<Places = string> {
  readonly latents: readonly Tensor[];
  readonly places: Places;
}

/** References that a family takes. */
export interface ReferenceRules<Places> {
  readonly channels: number;
  /** Names of where they may stand, the usual one first. */
  readonly places: readonly Places[];
}

/** The references of an entry. Fails with value.invalid and tensor.bad-shape for options of other kinds. */
export function referencesBy<Places>(
  { channels, places: allowed }: ReferenceRules<Places>,
  [, options]: Conditioning[number],
): References<Places> {
  const { reference_latents: latents = [], reference_latents_method: places = allowed[0] } = options;
  const isLatent = (value: unknown): boolean =>
    value instanceof Tensor && value.shape.length === 4 && value.size > 0 && value.shape[1] === channels;
  if (!Array.isArray(latents) || !latents.every(isLatent)) {
    const received = describe(Array.isArray(latents) ? latents.find((value) => !isLatent(value)) : latents);
    const expected = `reference latents [B, ${channels}, h, w]`;
    throw new LatentkitError("tensor.bad-shape", `conditioning: expected ${expected}, received ${received}.`);
  }
  const known = allowed.find((each) => each === places);
  if (known === undefined) throw placesError(allowed, places);
  return { latents, places: known };
}

/** Error of a conditioning that has references at other places than a model has learned. */
export function placesError(allowed: readonly unknown[], received: unknown): LatentkitError {
  const expected = `reference_latents_method ${allowed.join(" or ")}`;
  return new LatentkitError("value.invalid", `conditioning: expected ${expected}, received ${describe(received)}.`);
}

/** Whether the tokens of all entries stand at the same places. */
export function standAlike(
  [first, ...others]: Conditioning,
  referencesOf: (entry: Conditioning[number]) => References,
): boolean {
  const placesOf = (entry: Conditioning[number]): string => {
    const { latents, places } = referencesOf(entry);
    return JSON.stringify([entry[0].shape[1], places, latents.map(({ shape }) => shape.slice(2))]);
  };
  const places = first === undefined ? "" : placesOf(first);
  return others.every((entry) => placesOf(entry) === places);
}

/** Patches of all references [1 or n, L, numbers], in the model's units by `units`; undefined for none. */
export function patchesOfReferences(
  { latents }: References,
  units: (latent: Tensor) => Tensor,
  side: PatchSide = 2,
): Tensor | undefined {
  if (latents.length === 0) return undefined;
  const items = Math.max(...latents.map(({ shape }) => shape[0]!));
  return joinedTokens(latents.map((latent) => patchesOf(units(cycled(latent, items)), FLUX_PATCHES, side)));
}
