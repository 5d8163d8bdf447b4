import { LatentkitError } from "../base/errors.js";
import type { Validation } from "./validate.js";
import { isOfHost } from "./validation/graph-error.js";

/** Errors beyond these limits are counted, not quoted. */
const NAMED_ERRORS = 5;
const NAMED_CHARACTERS = 1000;

/** Makes one error of an invalid graph: the first error, then the others; the cause holds all data. */
export function validationError(validation: Validation): LatentkitError {
  const errors = Object.entries(validation.nodeErrors).flatMap(([nodeId, { class_type, errors }]) =>
    errors.map((error) => ({ nodeId, node: class_type, error })),
  );
  // other values would not help where the graph cannot run at all
  errors.sort((a, b) => Number(isOfHost(b.error)) - Number(isOfHost(a.error)));
  if (errors.length === 0 && !validation.ok) {
    const { code, sentence, input, received, expected, suggestion } = validation.error;
    return new LatentkitError(code, sentence, { input, received, expected, suggestion }, { cause: validation });
  }
  const { nodeId, node, error } = errors[0]!;
  const { code, sentence, input, received, expected, suggestion } = error;
  const details = { nodeId, node, input, received, expected, suggestion };
  const others = errors.slice(1).map(({ error }) => error.sentence);
  return new LatentkitError(code, sentence + othersText(others), details, { cause: validation });
}

function othersText(sentences: readonly string[]): string {
  if (sentences.length === 0) return "";
  const named: string[] = [];
  let characters = 0;
  for (const sentence of sentences) {
    characters += sentence.length;
    if (named.length + 1 === NAMED_ERRORS || characters > NAMED_CHARACTERS) break;
    named.push(sentence);
  }
  const count = sentences.length === 1 ? "There is 1 more error" : `There are ${sentences.length} more errors`;
  const rest = sentences.length - named.length;
  if (named.length === 0) return ` ${count}.`;
  return ` ${count}: ${named.join(" ")}${rest === 0 ? "" : ` And ${rest} more.`}`;
}
