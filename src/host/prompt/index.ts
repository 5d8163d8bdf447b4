export { encodePlain, encodePrompt, encodeSides } from "./encode.js";
export {
  type PromptOptions,
  TOKEN_NORMALIZATIONS,
  type TokenNormalization,
  WEIGHT_INTERPRETATIONS,
  type WeightInterpretation,
} from "./options.js";
export { parsePrompt, type Segment } from "./parse.js";
export type { Token } from "./tokenize.js";
export { tokenizePrompt } from "./tokenize.js";
