import type { HookErrorKind, REFUSALS } from "#src/service/hooks/hook-error.js";

/** Refusals that ComfyUI's APIs have and hooks have not. */
export type OfOneApi = {
  [Kind in HookErrorKind]: (typeof REFUSALS)[Kind] extends { of: string } ? Kind : never;
}[HookErrorKind];
