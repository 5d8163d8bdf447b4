import { LatentkitError, nodeName } from "../../base/errors.js";
import { isPlainObject } from "../../io/json/lossless.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import type { GraphFault } from "../prepared.js";
import { customError, type GraphError } from "./graph-error.js";

/** Result of a node's own validation, and the inputs that it read: "input_types" where it read the types of links. */
export type CustomValidation =
  | { readonly errors: readonly GraphError[]; readonly read: ReadonlySet<string> }
  | { readonly fault: GraphFault };

/**
 * Lets a node validate its inputs. Values are converted, linked inputs are present but undefined, absent ones are not
 * present. The node must return at once, not a promise.
 */
export function validateCustom(
  definition: NodeDefinition,
  at: { nodeId: string; node: string },
  values: Readonly<Record<string, unknown>>,
  inputTypes: Readonly<Record<string, string>>,
  { inputDir, files, hints }: ChoiceContext = {},
): CustomValidation {
  const read = new Set<string>();
  const inputs = new Proxy<Record<string, unknown>>(
    { ...values },
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
    files,
    hints,
    get inputTypes() {
      read.add("input_types");
      return inputTypes;
    },
  };
  let result: unknown;
  try {
    result = definition.validate!(inputs, context);
  } catch (error) {
    return { fault: faultOf(error, at) };
  }
  if (result instanceof Promise) {
    // a late result has no use
    result.catch(() => undefined);
    return { fault: faultOf(new TypeError("validate must return at once, received a promise"), at) };
  }
  if (result === true || result === undefined) return { errors: [], read };
  if (isPlainObject(result)) {
    const errors = Object.entries(result).map(([input, reason]) =>
      customError(at, input, reason instanceof LatentkitError ? reason : String(reason)),
    );
    return { errors, read };
  }
  const reason = typeof result === "string" ? result : false;
  const blamed = read.size === 0 ? [undefined] : [...read];
  return { errors: blamed.map((input) => customError(at, input, reason)), read };
}

function faultOf(error: unknown, at: { nodeId: string; node: string }): GraphFault {
  const reason = error instanceof Error ? error.message : String(error);
  const message = `${nodeName(at)}: its validation failed: ${reason.replace(/\.$/, "")}.`;
  return {
    error: new LatentkitError("validation.exception", message, { ...at }, { cause: error }),
    kind: error instanceof Error ? error.name : "Error",
  };
}
