// JSON that keeps every digit, from the file to the PNG's text chunk.

export { type ParseOptions, parseJson } from "./parse.js";
export { printJson, printJsonPretty, printJsonUnicode, printNonFinite, pythonNumber } from "./print.js";
export {
  cloneJson,
  freezeJson,
  HOSTILE_KEYS,
  isFrozenJson,
  isPlainObject,
  keysInOrder,
  MAX_DEPTH,
  mayLackDigits,
  NumberLiteral,
  recall,
  rememberOrder,
} from "./values.js";
