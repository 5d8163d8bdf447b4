import { BytePairs, qwenVocabulary } from "./byte-pairs.js";

/** Texts of Qwen's special tokens in the order of their ids, which are matched in the text of a user too. */
const SPECIAL = [
  "<|endoftext|>",
  "<|im_start|>",
  "<|im_end|>",
  "<|object_ref_start|>",
  "<|object_ref_end|>",
  "<|box_start|>",
  "<|box_end|>",
  "<|quad_start|>",
  "<|quad_end|>",
  "<|vision_start|>",
  "<|vision_end|>",
  "<|vision_pad|>",
  "<|image_pad|>",
  "<|video_pad|>",
  "<tool_call>",
  "</tool_call>",
  "<|fim_prefix|>",
  "<|fim_middle|>",
  "<|fim_suffix|>",
  "<|fim_pad|>",
  "<|repo_name|>",
  "<|file_sep|>",
  "<tool_response>",
  "</tool_response>",
  "<think>",
  "</think>",
] as const;
const FIRST_SPECIAL = 151_643;
const IDS: ReadonlyMap<string, number> = new Map(SPECIAL.map((text, index) => [text, FIRST_SPECIAL + index]));
const SPLIT =
  /(<\|(?:endoftext|im_start|im_end|object_ref_start|object_ref_end|box_start|box_end|quad_start|quad_end|vision_start|vision_end|vision_pad|image_pad|video_pad|fim_prefix|fim_middle|fim_suffix|fim_pad|repo_name|file_sep)\|>|<\/?(?:tool_call|tool_response|think)>)/;
/** English endings, letters with one sign before them, single digits, signs, ends of lines, spaces. */
const PIECES =
  /'(?:[sStTmMdD\u017f]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu;

/** Splits a text into ids of Qwen's vocabulary, without a template. Takes n log n steps. */
function tokenizeQwen(text: string): number[] {
  const pairs = new BytePairs(qwenVocabulary());
  const ids: number[] = [];
  for (const part of text.split(SPLIT)) {
    const special = IDS.get(part);
    if (special !== undefined) ids.push(special);
    else for (const [piece] of part.normalize("NFC").matchAll(PIECES)) pairs.append(piece, ids);
  }
  return ids;
}

/** The ids of a prompt for Z-Image: the user's message, and the beginning of a reply. */
export const tokenizeZImage = (prompt: string): number[] =>
  tokenizeQwen(`<|im_start|>user\n${prompt}<|im_end|>\n<|im_start|>assistant\n`);

/** The ids of a prompt for Flux.2 klein: as for Z-Image, and after it a thought without words. */
export const tokenizeFlux2 = (prompt: string): number[] =>
  tokenizeQwen(`<|im_start|>user\n${prompt}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n`);
