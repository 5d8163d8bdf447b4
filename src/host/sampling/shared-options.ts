import type { Conditioning } from "../types.js";

/**
 * Another side with what the positive side shares: the controls of ControlNetApply, and boxes of GLIGEN. Entries
 * without an area get them in turn, of several the last; a side that has its own for the whole picture stays as it is.
 */
export function withSharedOptions(positive: Conditioning, other: Conditioning): Conditioning {
  const controls = positive.filter(([, options]) => options.control_apply_to_uncond === true);
  return shared(positive, shared(controls, other, "control"), "gligen");
}

function shared(from: Conditioning, to: Conditioning, name: string): Conditioning {
  const whole = ([, options]: Conditioning[number]): boolean => isAbsent(options.area);
  const values = from.filter(whole).flatMap(([, options]) => (isAbsent(options[name]) ? [] : [options[name]]));
  const targets = to.filter(whole);
  if (values.length === 0 || targets.some(([, options]) => !isAbsent(options[name]))) return to;
  const byEntry = new Map(values.map((value, i) => [targets[i % targets.length], value]));
  return to.map((entry) => {
    const [tokens, options] = entry;
    return byEntry.has(entry) ? [tokens, { ...options, [name]: byEntry.get(entry) }] : entry;
  });
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;
