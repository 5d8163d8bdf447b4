import { describe, LatentkitError } from "../../base/errors.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning } from "../types.js";
import { pythonFloat } from "./python-float.js";

/** Share of the run over which the prompt is replaced by zeros. */
export interface ZeroedRange {
  readonly start: number;
  readonly end: number;
}

const DIRECTIVE = "TIMESTEP";

/**
 * Removes "TIMESTEP", "TIMESTEP:a" or "TIMESTEP:a:b" from the last line of a prompt. The bare word means 0.1 … 1.
 * Fails when a or b is no number.
 */
export function takeTimestep(text: string): { text: string; zeroed?: ZeroedRange } {
  const at = text.indexOf(DIRECTIVE, text.lastIndexOf("\n") + 1);
  if (at < 0) return { text };
  const tail = text.slice(at);
  const length = tail.search(/\s/);
  const word = length < 0 ? tail : tail.slice(0, length);
  const [, start = "0.1", end = "1"] = word.split(":", 3);
  const zeroed = { start: percent(start), end: percent(end) };
  return { text: text.slice(0, at) + text.slice(at + word.length), zeroed };
}

/** Limits the prompt to the steps before the range, with zeros in the range; a range over all steps changes nothing. */
export function zeroRange(conditioning: Conditioning, { start, end }: ZeroedRange): Conditioning {
  const first = conditioning[0];
  if (first === undefined || (start === 0 && end === 1)) return conditioning;
  const [cond, options] = first;
  const pooled = options.pooled_output;
  const zeroOptions: Record<string, unknown> = { ...options, start_percent: start, end_percent: end };
  if (pooled instanceof Tensor) zeroOptions.pooled_output = Tensor.zeros(pooled.shape);
  const rest = conditioning.map(([tensor, own]): Conditioning[number] => {
    const { start_percent: from = 0, end_percent: to = 1 } = own as { start_percent?: number; end_percent?: number };
    return [tensor, { ...own, start_percent: from, end_percent: Math.min(to, start) }];
  });
  const isActive = ([, own]: Conditioning[number]): boolean => Number(own.start_percent) < start;
  return [[Tensor.zeros(cond.shape), zeroOptions], ...(conditioning.length === 1 ? rest : rest.filter(isActive))];
}

function percent(text: string): number {
  const value = pythonFloat(text);
  if (value !== undefined && Number.isFinite(value)) return value;
  throw new LatentkitError(
    "value.invalid",
    `Prompt: expected TIMESTEP, TIMESTEP:start or TIMESTEP:start:end with numbers, received ${describe(text)}.`,
  );
}
