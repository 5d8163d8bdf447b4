import { describe, LatentkitError } from "../../base/errors.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning } from "../types.js";
import { pythonFloat } from "./parse.js";

/** Prompt of a range of steps; percents are of the whole run. */
export interface ScheduledText {
  readonly text: string;
  readonly startPercent: number;
  readonly endPercent: number;
}

/** Limit of characters that all texts of one schedule take. */
const MAX_WALKED = 2 ** 25;

/** A bracket of a schedule, whose part depends on the step. Offsets into the text. */
interface Bracket {
  readonly start: number;
  readonly parts: readonly (readonly [start: number, end: number])[];
  readonly end: number;
  /** The last step of the first part; absent: the parts alternate. */
  readonly until?: number;
}

/**
 * Expands a prompt with schedules into its texts over `steps` steps: "[a:b:when]" is a, then b; "[a:when]" is nothing,
 * then a; "[a::when]" is a, then nothing; "[a|b]" changes with every step. `when` is a step, or with a decimal point and up
 * to 1 a share of the steps. Other brackets stay text. Neighbouring steps of one text are one entry.
 * Fails if a long text changes too often.
 */
export function scheduleTexts(text: string, steps: number): ScheduledText[] {
  const brackets = findBrackets(text, steps);
  const changes = changeSteps(brackets, steps);
  if (changes.length * text.length > MAX_WALKED) {
    throw new LatentkitError(
      "value.out-of-range",
      `Prompt: its schedule is too long: ${changes.length} changes of ${text.length} characters; at most ${MAX_WALKED} characters in all.`,
    );
  }
  const entries: ScheduledText[] = [];
  let start = 0;
  let current = textAt(text, brackets, changes[0]!);
  for (const [index, step] of changes.entries()) {
    const following = changes[index + 1];
    const next = following === undefined ? undefined : textAt(text, brackets, following);
    if (next === current) continue;
    entries.push({ text: current, startPercent: start / steps, endPercent: step / steps });
    start = step;
    if (next !== undefined) current = next;
  }
  return entries;
}

/** Steps (from 1) after which the text may change, the last step included. */
function changeSteps(brackets: readonly Bracket[], steps: number): number[] {
  const changes = new Set<number>([steps]);
  for (const { until } of brackets) {
    if (until === undefined) return Array.from({ length: steps }, (_, i) => i + 1);
    if (until >= 1) changes.add(until);
  }
  return [...changes].sort((a, b) => a - b);
}

/** Text at a step (from 1); reads the chosen parts only. */
function textAt(text: string, brackets: readonly Bracket[], step: number): string {
  const pieces: string[] = [];
  const pending: { end: number; resume: number }[] = [{ end: text.length, resume: text.length }];
  let at = 0;
  let next = 0;
  for (let part = pending.at(-1); part !== undefined; part = pending.at(-1)) {
    while (next < brackets.length && brackets[next]!.start < at) next++;
    const bracket = brackets[next];
    if (bracket === undefined || bracket.start >= part.end) {
      pieces.push(text.slice(at, part.end));
      at = part.resume;
      pending.pop();
      continue;
    }
    const { start, parts, end, until } = bracket;
    pieces.push(text.slice(at, start));
    const [from, to] = parts[until === undefined ? (step - 1) % parts.length : step <= until ? 0 : 1]!;
    at = from;
    pending.push({ end: to, resume: end });
  }
  return pieces.join("");
}

/** A bracket being read: separators inside its round brackets do not count. */
interface OpenBracket {
  readonly start: number;
  readonly colons: number[];
  readonly bars: number[];
  depth: number;
}

/** Brackets that are schedules, in the order they open. */
function findBrackets(text: string, steps: number): Bracket[] {
  const brackets: Bracket[] = [];
  const open: OpenBracket[] = [];
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    const current = open.at(-1);
    if (character === "\\") i++;
    else if (character === "[") open.push({ start: i, colons: [], bars: [], depth: 0 });
    else if (current === undefined) continue;
    else if (character === "(") current.depth++;
    else if (character === ")") current.depth = Math.max(0, current.depth - 1);
    else if (character === ":" && current.depth === 0) current.colons.push(i);
    else if (character === "|" && current.depth === 0) current.bars.push(i);
    else if (character === "]") {
      open.pop();
      const bracket = toBracket(text, current, i, steps);
      if (bracket !== undefined) brackets.push(bracket);
    }
  }
  return brackets.sort((a, b) => a.start - b.start);
}

function toBracket(
  text: string,
  { start, colons, bars }: OpenBracket,
  close: number,
  steps: number,
): Bracket | undefined {
  const end = close + 1;
  if (bars.length > 0) {
    const edges = [start, ...bars, close];
    return { start, end, parts: edges.slice(1).map((edge, i) => [edges[i]! + 1, edge] as const) };
  }
  const [first, second] = colons;
  const last = second ?? first;
  if (first === undefined || last === undefined || colons.length > 2) return undefined;
  const until = lastStepOf(text.slice(last + 1, close), steps);
  if (until === undefined) return undefined;
  const before = [start + 1, first] as const;
  // "[a:when]" adds a: nothing before it
  return second === undefined
    ? { start, end, until, parts: [[first, first], before] }
    : { start, end, until, parts: [before, [first + 1, second]] };
}

const WHEN = /^(?:\d+(?:\.\d*)?|\.\d+)$/;

/** Last step before the switch, 0 … steps. */
function lastStepOf(when: string, steps: number): number | undefined {
  const text = when.trim();
  if (!WHEN.test(text)) return undefined;
  const value = Number(text);
  const isShare = text.includes(".") && value <= 1;
  return Math.min(steps, Math.floor(isShare ? value * steps : value));
}

/** Share of the run over which the prompt is replaced by zeros. */
export interface ZeroedRange {
  readonly start: number;
  readonly end: number;
}

const DIRECTIVE = "TIMESTEP";

/**
 * Removes "TIMESTEP", "TIMESTEP:a" or "TIMESTEP:a:b" from the last line of a prompt. The bare word means 0.1 … 1.
 * Fails if a or b is not a number.
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
