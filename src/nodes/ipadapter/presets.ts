import { describe, LatentkitError } from "../../base/errors.js";
import { hostModel } from "../../host/derived-model.js";
import type { ImageAdapter, Model } from "../../host/types.js";
import { atInput, type Loading, loadHostFile } from "../host-files.js";
import { type ChoiceContext, choice } from "../inputs.js";

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

type PresetName = keyof typeof PRESETS;

const PRESET_NAMES = Object.keys(PRESETS) as readonly PresetName[];

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

/** Kinds of the files of a preset. */
const KINDS = ["ipadapter", "clip_vision"] as const;

/** The adapter of a preset for a family, and its encoder. Throws model.missing. */
function presetFiles(
  preset: string,
  family: string,
  host: NonNullable<ChoiceContext["host"]>,
): readonly [adapter: { kind: "ipadapter"; name: string }, encoder: { kind: "clip_vision"; name: string }] {
  const { sd1, sdxl }: { sd1: Preset; sdxl?: Preset } = PRESETS[preset as PresetName];
  const files = family.startsWith("sdxl") ? sdxl : sd1;
  if (files === undefined)
    throw new LatentkitError("model.missing", `${describe(preset)} has no IPAdapter of SDXL, which the model is.`);
  const named = <Kind extends (typeof KINDS)[number]>(kind: Kind, pattern: Pattern): { kind: Kind; name: string } => {
    const name = find(host.files?.(kind) ?? [], pattern);
    if (name !== undefined) return { kind, name };
    const words = pattern.map((parts) => `"${parts.join(" … ").replaceAll(".", "?")}.safetensors"`).join(" or ");
    const message = `expected a file ${words} below ${kind}, where ? is any character, received none.`;
    throw new LatentkitError("model.missing", message);
  };
  return [named("ipadapter", files.adapter), named("clip_vision", files.encoder)];
}

/** Input with the choice of a preset. */
export const presetName = () => ({ ...choice(PRESET_NAMES), preset: { kinds: KINDS, filesOf: presetFiles } });

/** Loads the adapter of a preset for a model, with its encoder. Fails with host.missing, model.missing and as loadHostFile. */
export async function presetAdapter(model: Model, preset: PresetName, loading: Loading): Promise<ImageAdapter> {
  const { host } = loading;
  for (const kind of KINDS) if (host.files?.(kind) === undefined) await loadHostFile(kind, "preset", "", loading);
  const family = hostModel(model).sampling.name;
  const [adapter, encoder] = await atInput("preset", () => presetFiles(preset, family, host));
  const loaded = await loadHostFile(adapter.kind, "preset", adapter.name, loading);
  return loaded.withEncoder(await loadHostFile(encoder.kind, "preset", encoder.name, loading));
}
