import { KIND_NAMES, pictureKind } from "../../../io/pictures/format.js";
import { LENGTH_BYTES } from "../../../io/safetensors.js";

/** Bytes at the beginning of a file that tell its format. */
export const START_BYTES = 512;

/** First character of a header. */
const BRACE = 0x7b;

const PICKLE = "a PyTorch pickle (.ckpt, .pt or .bin), which could run any code: convert it to .safetensors";
const AGAIN = "download it again";

/** How files of other formats begin, in latin1; what each is, and what to do about it. */
const BEGINNINGS: readonly (readonly [start: string, format: string])[] = [
  ["\x80", PICKLE],
  ["PK", "a ZIP archive: unpack it"],
  ["\x1f\x8b", "a gzip archive: unpack it"],
  ["\x28\xb5\x2f\xfd", "a Zstandard archive: unpack it"],
  ["\xfd7zXZ\0", "an xz archive: unpack it"],
  ["BZh", "a bzip2 archive: unpack it"],
  ["7z\xbc\xaf\x27\x1c", "a 7-Zip archive: unpack it"],
  ["Rar!", "a RAR archive: unpack it"],
  ["\x89HDF\r\n\x1a\n", "an HDF5 file: use the model's .safetensors file"],
  ["%PDF-", "a PDF document"],
  ["\x1a\x45\xdf\xa3", "a video"],
  ["version https://git-lfs.github.com/", "a Git LFS pointer: fetch the real file with git lfs pull"],
];

/** Place of a tar archive's mark. */
const TAR = { mark: "ustar", at: 257 };
/** Tags of fields in ONNX's protobuf: the version is first, then the producer, the domain, the graph or the operators. */
const ONNX = { version: 0x08, next: [0x12, 0x1a, 0x22, 0x3a, 0x42] };
const MOST_ONNX_VERSION = 31;

/** File that PyTorch's archives begin with. */
const PICKLE_IN_ARCHIVE = "/data.pkl";
const TEXTS: readonly (readonly [beginning: RegExp, format: string])[] = [
  [/^\s*<(?:!doctype|html|head|body|!--)/i, "a web page: the download may need a login or a token, or another address"],
  [/^\s*<\?xml/i, `XML, probably a server's error message: ${AGAIN}`],
  [/^\s*[{[]/, `JSON, probably a server's error message: ${AGAIN}`],
  [
    /^\s*(?:access (?:to|denied)|unauthorized|forbidden|invalid (?:username|credentials))/i,
    "a server's refusal: the download needs a login or a token",
  ],
  [/^/, `text: ${AGAIN}`],
];

/** Damage of a file that may once have been a .safetensors file, by its first bytes and its size. */
export function damageOf(start: Uint8Array, fileBytes: number): string | undefined {
  if (fileBytes === 0) return `an empty file: ${AGAIN}`;
  if (isBeginning(start))
    return headerEnd(start) > fileBytes ? `only the first ${fileBytes} bytes of one: ${AGAIN}` : undefined;
  if (start.every((byte) => byte === 0)) return `a file of zeros, probably an interrupted download: ${AGAIN}`;
  if (otherFormat(start) !== undefined) return undefined;
  if (fileBytes <= LENGTH_BYTES) return `only the first ${fileBytes} bytes of one: ${AGAIN}`;
  const isLength = start.subarray(4, LENGTH_BYTES).every((byte) => byte === 0) && headerEnd(start) <= fileBytes;
  return isLength ? undefined : `a file that does not start like one: ${AGAIN}`;
}

/** Format of a file by its first bytes, with what to do; undefined for .safetensors and for unknown formats. */
export function otherFormat(start: Uint8Array): string | undefined {
  if (isBeginning(start)) return undefined;
  const head = Buffer.from(start).toString("latin1");
  if (head.startsWith("PK") && head.includes(PICKLE_IN_ARCHIVE)) return PICKLE;
  const known = BEGINNINGS.find(([beginning]) => head.startsWith(beginning));
  if (known !== undefined) return known[1];
  const picture = pictureKind(start);
  if (picture !== undefined) return `${KIND_NAMES[picture]} picture`;
  if (head.startsWith("ftyp", 4)) return "a video";
  if (head.startsWith(TAR.mark, TAR.at)) return "a tar archive: unpack it";
  if (isOnnx(start)) return "an ONNX model: use the model's .safetensors file";
  const text = textOf(start);
  return text === undefined ? undefined : TEXTS.find(([beginning]) => beginning.test(text))?.[1];
}

const isOnnx = ([tag, version = 0, next = 0]: Uint8Array): boolean =>
  tag === ONNX.version && version > 0 && version <= MOST_ONNX_VERSION && ONNX.next.includes(next);

/** Text of one byte per character, or of UTF-16; undefined for anything else. */
function textOf(start: Uint8Array): string | undefined {
  const [first, second] = start;
  for (const [encoding, isMarked, isPlain] of [
    ["utf-16le", first === 0xff && second === 0xfe, second === 0],
    ["utf-16be", first === 0xfe && second === 0xff, first === 0],
  ] as const) {
    if (!isMarked && !isPlain) continue;
    const text = new TextDecoder(encoding).decode(start);
    const isText = Array.from(text, (character) => character.charCodeAt(0)).every(isOfText);
    return isText && (isMarked || /^[\s -~]{2}/.test(text)) ? text : undefined;
  }
  return start.every(isOfText)
    ? Buffer.from(start)
        .toString("latin1")
        .replace(/^\xef\xbb\xbf/, "")
    : undefined;
}

/** Whether a file begins with the length of a header, always below 4 GiB, and the brace that opens it. */
const isBeginning = (start: Uint8Array): boolean =>
  start[LENGTH_BYTES] === BRACE && start.subarray(4, LENGTH_BYTES).every((byte) => byte === 0);

/** Whether a byte or character is white space or not a control character. */
const isOfText = (code: number): boolean => code >= 0x20 || (code >= 0x09 && code <= 0x0d);

const headerEnd = (start: Uint8Array): number => Buffer.from(start).readUInt32LE() + LENGTH_BYTES;
