import { atNode, describe, LatentkitError, nodeName } from "../../base/errors.js";
import { plain } from "../../nodes/values.js";
import type { Entry } from "../memory/cache.js";
import type { PreparedNode } from "../prepared.js";

/** Outputs for events and results: the value of an output that has one, the list of values of any other. */
export function outputValues({ definition }: PreparedNode, { outputs }: Entry): unknown[] {
  return outputs.map((values, slot) => {
    const { type, list } = definition.outputs[slot]!;
    const value = values.length === 1 && !list ? values[0] : [...values];
    return type === "*" ? plain(value) : value;
  });
}

const MAX_LISTED = 16;

/** Inputs for an error event: scalars unchanged, all else in words, long lists cut. */
export function summarizeInputs(lists: Readonly<Record<string, readonly unknown[]>>): Record<string, unknown[]> {
  const summarize = (value: unknown): unknown =>
    value === null || typeof value === "number" || typeof value === "boolean" || typeof value === "bigint"
      ? value
      : typeof value === "string" && value.length <= 80
        ? value
        : value === undefined
          ? null
          : describe(value);
  return Object.fromEntries(
    Object.entries(lists).map(([input, list]) => [input, list.slice(0, MAX_LISTED).map(summarize)]),
  );
}

/** Makes a node's failure a LatentkitError that names the node. */
export function nodeError(error: unknown, { id, definition }: PreparedNode): LatentkitError {
  const at = { nodeId: id, node: definition.key };
  if (!(error instanceof LatentkitError)) {
    const reason = error instanceof Error ? error.message : String(error);
    return new LatentkitError("node.failed", `${nodeName(at)}: ${reason}`, at, { cause: error });
  }
  if (error.details.nodeId !== undefined) return error;
  // a node may have named itself, with a comma or a colon
  const { key } = definition;
  const isNamed = [`${key}, `, `${key}: `].some((name) => error.message.startsWith(name));
  const rest = isNamed ? error.message.slice(key.length + 2) : error.message;
  return new LatentkitError(error.code, atNode(at, rest), { ...error.details, ...at }, { cause: error });
}
