import { isFrozenJson, isPlainObject, recall } from "../../io/json/lossless.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";
import { type CheckedNode, checkNode } from "./validate-node.js";

const CHECKED = Symbol("checked");

// decision 19
/**
 * Checks a node like `checkNode`, once for a frozen node of the package that passed among the same classes. A file that
 * it names and that is removed later fails when it is read.
 */
export function checkCached(
  id: string,
  raw: Readonly<Record<string, unknown>>,
  definitions: ReadonlyMap<string, NodeDefinition>,
  context: ChoiceContext,
  builtIns: Registry | undefined,
): CheckedNode {
  const definition = definitions.get(id)!;
  const check = () => checkNode(id, raw, definitions, context);
  if (!isFrozenJson(raw) || builtIns?.get(definition.key) !== definition) return check();
  const dependencies = [
    definition,
    context.host,
    context.inputDir,
    context.files,
    ...linkedClasses(raw.inputs, definitions),
  ];
  return recall(raw, CHECKED, check, dependencies, ({ errors, fault }) => fault === undefined && errors.length === 0);
}

function linkedClasses(inputs: unknown, definitions: ReadonlyMap<string, NodeDefinition>): unknown[] {
  const links = isPlainObject(inputs) ? Object.values(inputs).filter(Array.isArray) : [];
  return links.map(([source]) => definitions.get(source as string));
}
