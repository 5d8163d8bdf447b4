import { CHECKED_LATER, checkOptions, FUNCTION, type OptionRules } from "../../base/options.js";
import type { ClipEncoder } from "../types.js";
import { chunkSegments, requireEncoder, type Token } from "./chunks.js";
import { normalizeWeights } from "./normalize.js";
import { checkTokenNormalization, type PromptOptions, requireText } from "./options.js";
import { parsePrompt } from "./parse.js";

export type TokenizeOptions = Pick<PromptOptions, "tokenNormalization" | "warn">;

const TOKENIZE_RULES: OptionRules<TokenizeOptions> = { tokenNormalization: CHECKED_LATER, warn: FUNCTION };

/**
 * Tokenizes a prompt into chunks of 77, framed and padded, with normalised weights.
 * Fails on an unknown normalisation and on an encoder that returns anything but ids.
 */
export function tokenizePrompt(text: string, encoder: ClipEncoder, options: TokenizeOptions = {}): Token[][] {
  requireText(text);
  requireEncoder(encoder);
  checkOptions("tokenizePrompt", options, TOKENIZE_RULES);
  const normalization = checkTokenNormalization(options.tokenNormalization);
  return normalizeWeights(chunkSegments(parsePrompt(text), encoder, options.warn), normalization);
}
