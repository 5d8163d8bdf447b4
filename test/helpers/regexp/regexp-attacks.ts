import { cpuMsSince } from "../cpu-time.js";

/** A text that an expression may need super-linear time for: `unit` is what grows. */
export interface Attack {
  readonly prefix: string;
  readonly unit: string;
  readonly suffix: string;
}

/** A unit of this many characters and less is repeated up to this length. */
const FULL_CHARACTERS = 100_000;
/** Lengths that end an attack early: exponential time shows in the first, cubic in the second, quadratic in the third. */
const TRIAL_CHARACTERS = [26, 400, 3000] as const;
/** No linear search takes as long for a trial, whatever else the machine does, in the best of some tries. */
const TRIAL_MS = 0.1;
const TRIES = 6;
/** So long that the machine is not to blame. */
const HOPELESS_TRIAL_MS = 2;
const HOPELESS_MS = 1000;
const MAX_ATTACKS = 4000;

const CANDIDATES = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  ..."\u0085\u00a0\u00e9\u0301\u0663\u1680\u2028\u3000\u4e00\ufeff\ud800",
];

/**
 * Texts made of the expression itself: every mix of a beginning that matches, a repeated piece (one character of each
 * kind that it distinguishes, two of them, samples of neighbouring atoms) and an end that may spoil the match.
 */
export function attacksOn({ source, flags }: { source: string; flags: string }): Attack[] {
  const atoms = atomsOf(source);
  const kinds = kindsOf(atoms, flags);
  const samples = atoms.map((atom) => kinds.find((kind) => matches(atom, kind, flags)) ?? "");
  const prefixes = new Set(["", ...kinds, ...samples.map((_, i) => samples.slice(0, i + 1).join(""))]);
  const units = new Set(kinds);
  for (let length = 2; length <= 4; length++) {
    for (let i = 0; i + length <= samples.length; i++) units.add(samples.slice(i, i + length).join(""));
  }
  units.add(samples.join(""));
  for (const a of kinds) for (const b of kinds) units.add(a + b);
  units.delete("");
  // an even share of too many, which would fill the memory
  const parts: Parts = [[...prefixes], [...units], ["", ...kinds]];
  const count = parts.reduce((product, { length }) => product * length, 1);
  const step = Math.max(1, count / MAX_ATTACKS);
  return Array.from({ length: Math.min(count, MAX_ATTACKS) }, (_, i) => attackAt(Math.floor(i * step), parts));
}

type Parts = readonly [prefixes: string[], units: string[], suffixes: string[]];

/** The attack at a place in the list of all mixes of these beginnings, pieces and ends. */
function attackAt(at: number, [prefixes, units, suffixes]: Parts): Attack {
  const [unit, suffix] = [Math.floor(at / suffixes.length), at % suffixes.length];
  return {
    prefix: prefixes[Math.floor(unit / units.length)]!,
    unit: units[unit % units.length]!,
    suffix: suffixes[suffix]!,
  };
}

/** Milliseconds that an attack of 100,000 characters takes at its best, or already a shorter one that has no good end. */
export function msOf(literal: { source: string; flags: string }, attack: Attack, limitMs: number): number {
  const search = searchOf(literal);
  for (const characters of TRIAL_CHARACTERS) {
    const text = textOf(attack, characters);
    const ms = bestMs(() => search(text), TRIAL_MS);
    if (ms <= TRIAL_MS) continue;
    if (characters < TRIAL_CHARACTERS[2] || ms > HOPELESS_TRIAL_MS) return Number.POSITIVE_INFINITY;
    const full = textOf(attack, FULL_CHARACTERS);
    return bestMs(() => search(full), limitMs);
  }
  return 0;
}

/** The best of some tries in milliseconds of the processor; none follows one that is good enough. */
export function bestMs(work: () => unknown, enoughMs: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < TRIES && best > enoughMs; i++) {
    const start = process.cpuUsage();
    work();
    best = Math.min(best, cpuMsSince(start));
    if (best > HOPELESS_MS) break;
  }
  return best;
}

const textOf = ({ prefix, unit, suffix }: Attack, characters: number): string =>
  prefix + unit.repeat(Math.ceil(characters / unit.length)) + suffix;

function searchOf({ source, flags }: { source: string; flags: string }): (text: string) => unknown {
  const expression = new RegExp(source, flags);
  if (expression.global) return (text) => text.replace(expression, "");
  return (text) => {
    expression.lastIndex = 0;
    return expression.exec(text);
  };
}

/** Classes, escapes and characters of an expression, in order; groups and quantifiers are left out. */
function atomsOf(source: string): string[] {
  const bare = source.replace(/\(\?(?:<?[=!]|:|<\w+>)/g, "(");
  const atoms = bare.match(
    /\[(?:\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\u\{?[0-9a-fA-F]{4,6}\}?|\\x[0-9a-fA-F]{2}|\\[^bBkpPux0-9]|\{\d+,?\d*\}|[^()|?*+^$\\]/g,
  );
  return (atoms ?? []).filter((atom) => !/^\{\d+,?\d*\}$/.test(atom));
}

/** One character for each set of characters that no atom distinguishes. */
function kindsOf(atoms: readonly string[], flags: string): string[] {
  const kinds = new Map<string, string>();
  const different = [...new Set(atoms)];
  for (const candidate of CANDIDATES) {
    const signature = different.map((atom) => (matches(atom, candidate, flags) ? "1" : "0")).join("");
    // a visible one shows better in a message
    if (!kinds.has(signature) || (/[^!-~]/.test(kinds.get(signature)!) && /[!-~]/.test(candidate))) {
      kinds.set(signature, candidate);
    }
  }
  return [...kinds.values()];
}

function matches(atom: string, text: string, flags: string): boolean {
  return new RegExp(`^${atom}$`, flags.replace(/[gy]/g, "")).test(text);
}
