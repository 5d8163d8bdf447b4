import { LatentkitError, where } from "../../errors.js";
import { isPlainObject } from "../../io/json-lossless.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import type { GraphFault } from "../prepared.js";
import { customError, type GraphError } from "./graph-error.js";

/** What a node's own validation said, and which inputs it looked at: "input_types" where it saw the links' types. */
export type NodeVerdict =
  | { readonly errors: readonly GraphError[]; readonly read: ReadonlySet<string> }
  | { readonly fault: GraphFault };

/**
 * Asks a node to check its inputs. Values are converted; linked inputs are there, but undefined; absent ones are not
 * there. The node must answer at once.
 */
export function askNode(
  definition: NodeDefinition,
  at: { nodeId: string; node: string },
  given: Readonly<Record<string, unknown>>,
  inputTypes: Readonly<Record<string, string>>,
  { inputDir, hints }: ChoiceContext = {},
): NodeVerdict {
  const read = new Set<string>();
  const inputs = new Proxy<Record<string, unknown>>(
    { ...given },
    {
      get(target, key, receiver) {
        if (typeof key !== "string") return Reflect.get(target, key, receiver);
        if (Object.hasOwn(target, key)) read.add(key);
        if (key !== "input_types" || Object.hasOwn(target, key)) return Reflect.get(target, key, receiver);
        read.add(key);
        return inputTypes;
      },
    },
  );
  const context = {
    inputDir,
    hints,
    get inputTypes() {
      read.add("input_types");
      return inputTypes;
    },
  };
  let verdict: unknown;
  try {
    verdict = definition.validate!(inputs, context);
  } catch (error) {
    return { fault: faultOf(error, at) };
  }
  if (verdict instanceof Promise) {
    // whatever it comes to, it is too late
    verdict.catch(() => undefined);
    return { fault: faultOf(new TypeError("validate must answer at once, received a promise"), at) };
  }
  if (verdict === true || verdict === undefined) return { errors: [], read };
  if (isPlainObject(verdict)) {
    const errors = Object.entries(verdict).map(([input, reason]) =>
      customError(at, input, reason instanceof LatentkitError ? reason : String(reason)),
    );
    return { errors, read };
  }
  const reason = typeof verdict === "string" ? verdict : false;
  const blamed = read.size === 0 ? [undefined] : [...read];
  return { errors: blamed.map((input) => customError(at, input, reason)), read };
}

function faultOf(error: unknown, at: { nodeId: string; node: string }): GraphFault {
  const reason = error instanceof Error ? error.message : String(error);
  const message = `${where(at).slice(0, -2)}: its validation failed: ${reason.replace(/\.$/, "")}.`;
  return {
    error: new LatentkitError("validation.exception", message, { ...at }, { cause: error }),
    kind: error instanceof Error ? error.name : "Error",
  };
}
