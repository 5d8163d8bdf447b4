import { describe } from "../../base/errors.js";
import { isPlainObject, NumberLiteral } from "../../io/json/lossless.js";
import { asciiDigits } from "../../io/python-text.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { InputSpec } from "../../nodes/inputs.js";

/** A number with an exponent, with the separators that spreadsheets set between digits. */
const WITH_EXPONENT = /^[+-]?[0-9][0-9.,'’\s]*e[+-]?[0-9]+$/i;
const WITH_FRACTION = /^[+-]?[0-9]+\.[0-9]*$/;
/** Longer texts are not numbers. */
const MAX_CHARACTERS = 400;

type DefinitionOf = (classType: string) => Pick<NodeDefinition, "inputs"> | undefined;

type SeedTest = (nodeId: string, spec: InputSpec | undefined) => boolean;

/** Tells the inputs of a graph whose value is a seed: of their node, or of one that it reaches by links. */
export function createSeedTest(graph: Readonly<Record<string, unknown>>, definitionOf: DefinitionOf): SeedTest {
  let sources: Set<string> | undefined;
  return (nodeId, spec) => {
    if (spec === undefined) return false;
    if (takesSeeds(spec) || !carriesSeeds(spec)) return takesSeeds(spec);
    sources ??= seedSources(graph, definitionOf);
    return sources.has(nodeId);
  };
}

/**
 * Ids of the nodes whose results become seeds: by a link, or through nodes whose inputs have no maximum, such as
 * primitives.
 */
function seedSources(graph: Readonly<Record<string, unknown>>, definitionOf: DefinitionOf): Set<string> {
  const sourcesOf = (id: string, isFollowed: (spec: InputSpec) => boolean): string[] => {
    const node = Object.hasOwn(graph, id) ? graph[id] : undefined;
    if (!isPlainObject(node) || !isPlainObject(node.inputs)) return [];
    const declared = definitionOf(String(node.class_type))?.inputs ?? {};
    return Object.entries(node.inputs)
      .filter(([name, value]) => Array.isArray(value) && Object.hasOwn(declared, name) && isFollowed(declared[name]!))
      .map(([, link]) => String((link as unknown[])[0]));
  };
  // a set also yields entries added during the iteration
  const sources = new Set(Object.keys(graph).flatMap((id) => sourcesOf(id, takesSeeds)));
  for (const id of sources) for (const source of sourcesOf(id, carriesSeeds)) sources.add(source);
  return sources;
}

/** Whether an input takes whole numbers beyond 2^53, which a float cannot hold with all digits. */
const takesSeeds = ({ type, options: { max } }: InputSpec): boolean =>
  type === "INT" && max !== undefined && max > Number.MAX_SAFE_INTEGER;

/** Whether an input may pass a seed on: one with a maximum below 2^53, such as steps, cannot. */
const carriesSeeds = ({ type, options: { max } }: InputSpec): boolean =>
  type === "*" || (type === "INT" && max === undefined);

/**
 * Why a value is not a seed, as a clause: a program wrote it as a float, so that it may lack digits. Undefined for any
 * other value.
 */
export function lackOfDigits(value: unknown): string | undefined {
  const why = shorteningOf(value);
  return why && `expected a seed with all its digits, received ${describe(value)}: ${why}`;
}

function shorteningOf(value: unknown): string | undefined {
  // whole numbers that JSON writes with all their digits are bigints there
  if (typeof value === "number")
    return isExact(value) || !Number.isInteger(value) ? undefined : "a float beyond 2^53 cannot hold them";
  const text = value instanceof NumberLiteral ? value.text : typeof value === "string" ? value.trim() : "";
  const digits = text.length <= MAX_CHARACTERS ? asciiDigits(text) : "";
  if (WITH_EXPONENT.test(digits)) return "a number with an exponent does not show them";
  if (WITH_FRACTION.test(digits) && !isExact(Number(digits))) return "a float beyond 2^53 cannot hold them";
  return undefined;
}

const isExact = (number: number): boolean => Math.abs(number) <= Number.MAX_SAFE_INTEGER;
