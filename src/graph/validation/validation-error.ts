import { LatentkitError } from "../../errors.js";
import type { Validation } from "../validate.js";

/** A refused graph as one error: that of the first wrong input, with the number of the others and all data as cause. */
export function validationError(validation: Extract<Validation, { ok: false }>): LatentkitError {
  const found = Object.entries(validation.nodeErrors).flatMap(([nodeId, { class_type, errors }]) =>
    errors.map((error) => ({ nodeId, node: class_type, error })),
  );
  const { nodeId, node, error } = found[0] ?? { error: validation.error };
  const { code, sentence, input, received, expected, suggestion } = error;
  const others = found.length - 1;
  const more = others === 1 ? " There is 1 more error." : others > 1 ? ` There are ${others} more errors.` : "";
  const details = { nodeId, node, input, received, expected, suggestion };
  return new LatentkitError(code, sentence + more, details, { cause: validation });
}
