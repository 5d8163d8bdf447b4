import type { StoredType } from "../../../io/safetensors.js";

/** Forms in which a provider computes the parts of a network correctly, and on its own device. */
export interface Target {
  /** Attention as one operator, or written out, with the queries in parts. */
  readonly attention: "fused" | "plain";
  /** Numbers of a head up to which the one operator is good. */
  readonly largestHead: number;
  /** a · bᵀ as one operator, or with a transposed copy of b. */
  readonly matMul: "fused" | "transposed";
  /** Numbers of input channels from five on that its convolutions are right for: all, or multiples of four. */
  readonly convChannels: "any" | "fours";
  /** Types of 16 bits in which its operators take values; others are converted first. */
  readonly halfTypes: readonly StoredType[];
  /** Whether 3x3 convolutions of many channels are faster in tiles (winograd.ts). */
  readonly convInTiles?: true;
  /** Values that share a scale, for which products with quantised weights are right; none if absent: they are expanded. */
  readonly groups?: readonly number[];
}

/** The CPU's forms. */
export const CPU_TARGET: Target = {
  attention: "fused",
  largestHead: Number.POSITIVE_INFINITY,
  matMul: "fused",
  convChannels: "any",
  halfTypes: ["F16", "BF16"],
  convInTiles: true,
  groups: [16, 32, 64],
};
