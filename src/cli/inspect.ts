import { readFile, stat } from "node:fs/promises";
import { LatentkitError } from "../errors.js";
import { parseJson } from "../io/json-lossless.js";
import { printJson, printJsonPretty } from "../io/json-print.js";
import { type DecodedImage, decodePng } from "../io/png.js";
import type { Command } from "./command.js";

const MAX_FILE_BYTES = 2 ** 30;
const COLOURS: Readonly<Record<number, string>> = { 1: "grey", 2: "grey and alpha", 3: "RGB", 4: "RGBA" };

export const inspectCommand: Command = {
  usage: "inspect IMAGE.png",
  summary: "Show a PNG file's size and the texts in it (the graph that made it).",
  help: ["  --json   one JSON object"],
  options: { json: { type: "boolean" } },
  positionals: { min: 1, max: 1 },
  run: async (args, terminal) => {
    const path = args.positionals[0]!;
    const image = await decodePng(await read(path));
    const { width, height, channels, bitDepth } = image;
    const texts = Object.entries(image.text).map(([key, text]) => [key, readText(text)] as const);
    if (args.flag("json")) {
      terminal.out(`${printJson({ path, width, height, channels, bitDepth, text: Object.fromEntries(texts) })}\n`);
      return 0;
    }
    terminal.out(`${path}: ${width} x ${height}, ${describeColour(image)}\n`);
    for (const [key, value] of texts) {
      terminal.out(`${key}:\n${typeof value === "string" ? value : printJsonPretty(value)}\n`);
    }
    return 0;
  },
};

async function read(path: string): Promise<Buffer> {
  try {
    if ((await stat(path)).size > MAX_FILE_BYTES) {
      throw new LatentkitError("png.too-large", `${path}: expected at most 1 GiB.`);
    }
    return await readFile(path);
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    const [name, why] =
      code === "ENOENT" ? (["file.not-found", "not found"] as const) : (["file.read-failed", code] as const);
    throw new LatentkitError(name, `Image ${path} cannot be read (${why}).`, {}, { cause: error });
  }
}

const describeColour = ({ channels, bitDepth }: DecodedImage) => `${COLOURS[channels]}, ${bitDepth} bits`;

/** JSON texts as values, with every digit; any other text as it is. */
function readText(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return parseJson(text, { nonFinite: true });
  } catch (error) {
    if (error instanceof LatentkitError) return text;
    throw error;
  }
}
