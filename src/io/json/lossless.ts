// JSON that keeps every digit, from the file to the PNG's text chunk.
export { freezeJson, isFrozenJson, recall } from "./frozen.js";
export { type ParseOptions, parseJson } from "./parse.js";
export { printJson, printJsonPretty, printJsonUnicode, printNonFinite, pythonNumber } from "./print.js";
export {
  cloneJson,
  HOSTILE_KEYS,
  isPlainObject,
  keysInOrder,
  MAX_DEPTH,
  mayLackDigits,
  NumberLiteral,
  rememberOrder,
} from "./values.js";
