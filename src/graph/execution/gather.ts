import { LatentkitError } from "../../base/errors.js";
import { NumberLiteral, pythonNumber } from "../../io/json/lossless.js";
import { Blocker } from "../../nodes/define.js";
import type { InputSpec } from "../../nodes/inputs.js";
import { plain } from "../../nodes/values.js";
import type { Entry } from "../memory/cache.js";
import type { PreparedNode } from "../prepared.js";

/** A node's inputs as lists of values: a literal is a list of one. */
export interface Gathered {
  readonly lists: Readonly<Record<string, readonly unknown[]>>;
  /** Lazy inputs whose sources have no result. */
  readonly missing: ReadonlySet<string>;
  /** Lazy inputs that have a value but are withheld until the node needs them. */
  readonly held: ReadonlySet<string>;
  /** Number of calls: one for each element of the longest list; 0 where an empty list keeps the node from running. */
  readonly calls: number;
  /** The input whose list is empty. */
  readonly empty?: string;
}

/** An output's declared type. */
export type TypeOf = (id: string, slot: number) => string | undefined;

/** Checks one value that came through a link and returns it as the node receives it. */
export type CheckValue = (spec: InputSpec, value: unknown, input: string) => unknown;

/**
 * Gathers the inputs that have values now. A lazy input outside `needed` is passed where it happens to have one valid
 * value; lists, blockers and wrong values are withheld, so that a node never depends on the content of a cache.
 */
export function gather(
  node: PreparedNode,
  resultOf: (id: string) => Entry | undefined,
  typeOf: TypeOf,
  check: CheckValue | undefined,
  needed: ReadonlySet<string>,
): Gathered {
  const lists: Record<string, readonly unknown[]> = {};
  let missing = NO_INPUTS;
  let held = NO_INPUTS;
  let longest = 0;
  let empty: string | undefined;
  let isAfterSkip = false;
  for (const { input, spec, source, slot } of node.links) {
    const entry = resultOf(source);
    if (entry === undefined) {
      missing = new Set(missing).add(input);
      lists[input] = NOTHING;
      longest = Math.max(longest, 1);
      continue;
    }
    const values = convertNumbers(entry.outputs[slot] ?? NOTHING, spec, typeOf(source, slot));
    if (spec.lazy && !needed.has(input)) {
      const value = values.length === 1 ? checkedOrUndefined(spec, values[0], input, check) : undefined;
      if (value === undefined) held = new Set(held).add(input);
      lists[input] = [value];
      longest = Math.max(longest, 1);
      continue;
    }
    lists[input] = check === undefined ? values : values.map((value) => checked(spec, value, input, check));
    longest = Math.max(longest, values.length);
    if (values.length === 0) {
      empty = input;
      isAfterSkip ||= entry.skipped === true;
    }
  }
  for (const input of Object.keys(node.values)) {
    lists[input] = [node.values[input]];
    longest = Math.max(longest, 1);
  }
  if (node.definition.inputIsList || empty === undefined) {
    return { lists, missing, held, calls: node.definition.inputIsList ? 1 : Math.max(1, longest) };
  }
  // as in ComfyUI, a node whose lists are all empty runs once without them
  return { lists, missing, held, calls: longest === 0 && !isAfterSkip ? 1 : 0, empty };
}

const NOTHING: readonly unknown[] = [undefined];
const NO_INPUTS: ReadonlySet<string> = new Set();

/** State before anything is gathered. */
export const NOT_GATHERED: Gathered = { lists: {}, missing: NO_INPUTS, held: NO_INPUTS, calls: 0 };

/** Makes a FLOAT of 80 a literal 80.0 for a node that distinguishes floats; for any other literals become numbers. */
function convertNumbers(
  values: readonly unknown[],
  { literal }: InputSpec,
  type: string | undefined,
): readonly unknown[] {
  if (literal && type === "FLOAT") {
    return values.map((value) => (Number.isInteger(value) ? new NumberLiteral(pythonNumber(value as number)) : value));
  }
  return !literal && type === "*" ? (plain(values) as readonly unknown[]) : values;
}

function checked(spec: InputSpec, value: unknown, input: string, check: CheckValue): unknown {
  return value instanceof Blocker ? value : check(spec, value, input);
}

/** Returns undefined for a blocker or a wrong value: an input that is not needed must not make the node fail. */
function checkedOrUndefined(spec: InputSpec, value: unknown, input: string, check: CheckValue | undefined): unknown {
  if (value instanceof Blocker) return undefined;
  try {
    return check === undefined ? value : check(spec, value, input);
  } catch (error) {
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}

/** Arguments of one call: whole lists, or the index-th element of each, shorter lists repeating their last. */
export function argumentsOf({ lists }: Gathered, index: number, takesLists: boolean): Record<string, unknown> {
  if (takesLists) return Object.fromEntries(Object.entries(lists).map(([input, list]) => [input, [...list]]));
  const call: Record<string, unknown> = {};
  for (const input of Object.keys(lists)) {
    const list = lists[input]!;
    if (list.length > 0) call[input] = list[Math.min(index, list.length - 1)];
  }
  return call;
}

/** Returns the blocker among the arguments of a call, inside whole lists too. */
export function findBlocker(call: Readonly<Record<string, unknown>>, takesLists: boolean): Blocker | undefined {
  for (const input of Object.keys(call)) {
    const value = call[input];
    if (value instanceof Blocker) return value;
    if (!takesLists || !Array.isArray(value)) continue;
    const inside: unknown = value.find((item) => item instanceof Blocker);
    if (inside instanceof Blocker) return inside;
  }
  return undefined;
}
