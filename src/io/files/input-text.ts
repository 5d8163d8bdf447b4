import { bufferOf } from "../../base/bytes.js";
import { valueError } from "../../base/errors.js";

/** Bytes of input files by the names that a graph has for them. */
export type FilesByName = Readonly<Record<string, Uint8Array>>;

/** Whether the name of an input file is an address. */
export const isAddress = (name: unknown): name is string => typeof name === "string" && /^https?:\/\//i.test(name);

/** Whether the name of an input file is a data: URL, which holds the file. */
export const isDataText = (name: string): boolean => /^data:/i.test(name);

/** The name without " [input]", as ComfyUI may write it. */
export const withoutType = (name: string): string => name.replace(/ \[input\]$/, "");

const MAX_HEADER_CHARACTERS = 256;

/** Bytes of a data: URL in base64, whose type is ignored: a file's bytes say what it is. Fails with value.invalid. */
export function dataBytes(text: string, subject: string): Buffer {
  const header = text.slice(0, MAX_HEADER_CHARACTERS);
  const comma = header.indexOf(",");
  const isBase64 = comma > 0 && header.slice(0, comma).toLowerCase().endsWith(";base64");
  const bytes = isBase64 ? Buffer.from(text.slice(comma + 1), "base64") : undefined;
  // the decoder skips characters outside base64
  if (bytes !== undefined && bytes.length === lengthOf(text, comma + 1)) return bytes;
  throw valueError("value.invalid", subject, 'a base64 data: URL ("data:image/png;base64,...")', text);
}

/** Number of bytes that valid base64 from `start` on stands for; undefined for a length that base64 cannot have. */
function lengthOf(text: string, start: number): number | undefined {
  let end = text.length;
  while (end > start && end > text.length - 2 && text[end - 1] === "=") end--;
  return (end - start) % 4 === 1 ? undefined : Math.floor(((end - start) * 3) / 4);
}

/** Bytes of a file at hand, by its name; undefined if there is none. */
export function givenBytes(files: FilesByName | undefined, name: string): Buffer | undefined {
  if (files === undefined) return undefined;
  const key = [name, withoutType(name)].find((key) => Object.hasOwn(files, key));
  if (key === undefined) return undefined;
  const bytes = files[key]!;
  // the core reads no memory that another thread may write
  return bytes.buffer instanceof SharedArrayBuffer ? Buffer.from(bytes) : bufferOf(bytes);
}
