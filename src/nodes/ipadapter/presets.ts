import { inputError, LatentkitError } from "../../base/errors.js";
import { hostModel } from "../../host/derived-model.js";
import type { ImageAdapter, Model } from "../../host/types.js";
import { type Loading, loadHostFile } from "../host-files.js";

/** Parts of a file's name in their order, the last one before its ending; "." is any character. One of several. */
type Pattern = readonly (readonly string[])[];

/** An adapter of a family. */
interface Preset {
  readonly adapter: Pattern;
  readonly encoder: Pattern;
}

const H: Pattern = [
  ["vit.h.14", "s32b.b79k"],
  ["ipadapter", "sd15"],
  ["sd15", "model"],
  ["sd1.5", "model"],
];
const BIG_G: Pattern = [
  ["vit.bigg.14", "39b.b160k"],
  ["ipadapter", "sdxl"],
  ["sdxl", "model"],
];

const one = (name: string, encoder: Pattern = H): Preset => ({ adapter: [[name]], encoder });

/** Presets with the files of Stable Diffusion 1 and of SDXL, which some do not have. */
const PRESETS = {
  "LIGHT - SD1.5 only (low strength)": { sd1: { adapter: [["sd15.light.v11"], ["sd15.light"]], encoder: H } },
  "STANDARD (medium strength)": { sd1: one("ip.adapter.sd15"), sdxl: one("ip.adapter.sdxl.vit.h") },
  "VIT-G (medium strength)": { sd1: one("sd15.vit.g", BIG_G), sdxl: one("ip.adapter.sdxl", BIG_G) },
  "PLUS (high strength)": { sd1: one("ip.adapter.plus.sd15"), sdxl: one("plus.sdxl.vit.h") },
  "PLUS FACE (portraits)": { sd1: one("plus.face.sd15"), sdxl: one("plus.face.sdxl.vit.h") },
  "FULL FACE - SD1.5 only (portraits stronger)": { sd1: one("full.face.sd15") },
} as const satisfies Readonly<Record<string, { readonly sd1: Preset; readonly sdxl?: Preset }>>;

export type PresetName = keyof typeof PRESETS;

export const PRESET_NAMES = Object.keys(PRESETS) as readonly PresetName[];

const ENDINGS = [".safetensors", ".bin"];

/** Whether a name has the parts of a pattern. */
function hasParts(name: string, parts: readonly string[]): boolean {
  const lower = name.toLowerCase();
  const ending = ENDINGS.find((each) => lower.endsWith(each));
  if (ending === undefined) return false;
  const stem = lower.slice(0, -ending.length);
  const last = parts.at(-1)!;
  const end = stem.length - last.length;
  if (end < 0 || !isAt(stem, end, last)) return false;
  let from = 0;
  for (const part of parts.slice(0, -1)) {
    while (from + part.length <= end && !isAt(stem, from, part)) from++;
    from += part.length;
    if (from > end) return false;
  }
  return true;
}

const isAt = (text: string, at: number, part: string): boolean =>
  [...part].every((character, i) => character === "." || text[at + i] === character);

/** First name of a sorted list that fits a pattern, whose ways count in their order. */
function find(names: readonly string[], pattern: Pattern): string | undefined {
  const sorted = [...names].sort();
  for (const parts of pattern) {
    const found = sorted.find((name) => hasParts(name, parts));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Loads the adapter of a preset for a model, with its encoder. Fails with value.invalid and model.missing. */
export async function presetAdapter(model: Model, preset: PresetName, loading: Loading): Promise<ImageAdapter> {
  const isSdxl = hostModel(model).sampling.name.startsWith("sdxl");
  const { sd1, sdxl }: { sd1: Preset; sdxl?: Preset } = PRESETS[preset];
  const files = isSdxl ? sdxl : sd1;
  if (files === undefined)
    throw inputError("value.invalid", { input: "preset" }, "a preset for SDXL, which the model is", preset);
  const load = async <Kind extends "ipadapter" | "clip_vision">(kind: Kind, pattern: Pattern) => {
    const name = find(loading.host.files?.(kind) ?? [], pattern);
    if (name !== undefined || loading.host.files?.(kind) === undefined)
      return loadHostFile(kind, "preset", name ?? "", loading);
    const words = pattern.map((parts) => `"${parts.join(" … ").replaceAll(".", "?")}.safetensors"`).join(" or ");
    const message = `input "preset": expected a file ${words} below ${kind}, where ? is any character, received none.`;
    throw new LatentkitError("model.missing", message, { input: "preset" });
  };
  const adapter = await load("ipadapter", files.adapter);
  return adapter.withEncoder(await load("clip_vision", files.encoder));
}
