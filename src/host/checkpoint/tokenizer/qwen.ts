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

/** Says what a reply should describe: the picture of a prompt, or how a prompt changes pictures. */
const SYSTEM = {
  image:
    "Describe the image by detailing the color, shape, size, texture, quantity, text, spatial relationships of the objects and background:",
  edit: "Describe the key features of the input image (color, shape, size, texture, objects, background), then explain how the user's text instruction should alter or modify the image. Generate a new image that meets the user's requirements while maintaining consistency with the original input where appropriate.",
} as const;
const MESSAGE = "<|im_start|>";

/** The ids of a prompt for Qwen-Image between messages of their own, or as it is if it begins with one. */
export function tokenizeQwenImage(prompt: string, system: keyof typeof SYSTEM): number[] {
  if (prompt.startsWith(MESSAGE)) return tokenizeQwen(prompt);
  const [before, after] = [`${MESSAGE}system\n${SYSTEM[system]}<|im_end|>\n${MESSAGE}user\n`, "<|im_end|>\n"];
  return tokenizeQwen(`${before}${prompt}${after}${MESSAGE}assistant\n`);
}

/** The place of a picture among ids. */
export const IMAGE_PAD = IDS.get("<|image_pad|>")!;

/** Number of ids before the words of a user: up to the second message's beginning, its role and the line's end. */
export function idsBeforeUser(ids: readonly number[]): number {
  const start = IDS.get(MESSAGE)!;
  const second = ids.indexOf(start, ids.indexOf(start) + 1);
  if (second <= 0) return 0;
  const [role, end] = USER_LINE;
  return ids[second + 1] === role && ids[second + 2] === end ? second + 3 : second;
}

/** Ids of "user" and of the line's end after it. */
const USER_LINE = [872, 198] as const;
