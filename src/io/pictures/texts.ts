import { readPngTexts } from "../png/text-chunks.js";
import { type ExifText, exifTexts, USER_COMMENT } from "./exif.js";
import { avifExif, jpegExif, webpExif } from "./exif-block.js";
import { notPicture, type PictureKind, pictureKind } from "./format.js";

/**
 * Texts that a picture's file carries, by their keys in ComfyUI's PNG files: `prompt`, `workflow`, `parameters` and any
 * other; PNG, WebP, JPEG, AVIF and TIFF, without sharp. The pixels may be damaged. A damaged text is passed over. Throws
 * picture.invalid for any other file, and png.too-large.
 */
export function pictureTexts(bytes: Uint8Array): Record<string, string> {
  const kind = bytes instanceof Uint8Array ? pictureKind(bytes) : undefined;
  if (kind === undefined) throw notPicture(bytes);
  if (kind === "png") return readPngTexts(bytes);
  const block = EXIF_BLOCKS[kind]?.(bytes);
  return block === undefined ? {} : textsOf(exifTexts(block));
}

const EXIF_BLOCKS: { readonly [Kind in PictureKind]?: (bytes: Uint8Array) => Uint8Array | undefined } = {
  jpeg: jpegExif,
  webp: webpExif,
  tiff: (bytes) => bytes,
  avif: avifExif,
};

/** Keys that programs spell with capitals too. */
const KNOWN_KEYS: ReadonlySet<string> = new Set(["prompt", "workflow", "parameters", "latentkit"]);

/** Tags of plain texts, by the names that PNG gives these. */
const NAMED_TAGS: ReadonlyMap<number, string> = new Map([
  [0x010e, "Description"],
  [0x0131, "Software"],
  [0x013b, "Author"],
  [0x8298, "Copyright"],
]);

function textsOf(entries: readonly ExifText[]): Record<string, string> {
  const texts = new Map<string, string>();
  for (const { tag, text } of entries) {
    const [key, value] = keyed(text) ?? [tag === USER_COMMENT ? commentKey(text) : NAMED_TAGS.get(tag), text];
    if (key !== undefined && value !== "" && !texts.has(key)) texts.set(key, value);
  }
  return Object.fromEntries(texts);
}

/** Parts of "prompt:{…}", as ComfyUI writes JSON into the tags of cameras; undefined for any other text. */
function keyed(text: string): [key: string, value: string] | undefined {
  const parts = /^([\p{L}_][^:"{}[\]\p{Cc}]{0,78}):[ \t]{0,9}(?=[{["\d-]|true|false|null)/u.exec(text);
  if (parts === null) return undefined;
  const key = parts[1]!.trim();
  const lower = key.toLowerCase();
  return [KNOWN_KEYS.has(lower) ? lower : key, text.slice(parts[0].length)];
}

/** Key of a user comment: the line of settings that A1111 writes, or a graph that other programs write instead. */
function commentKey(text: string): string {
  if (!/^\s{0,9}\{/.test(text)) return "parameters";
  if (text.includes('"class_type"')) return "prompt";
  return text.includes('"nodes"') && text.includes('"links"') ? "workflow" : "parameters";
}
