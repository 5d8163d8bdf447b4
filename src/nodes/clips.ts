import { LatentkitError } from "../base/errors.js";
import type { Clip, Conditioning, Host } from "../host/types.js";
import type { Tensor } from "../tensor/tensor.js";
import { type Loading, lacking, loadHostFile, type NamedInput } from "./host-files.js";

/** Order in which the encoders' tokens stand side by side, whatever the order of the files. */
const ORDER = ["l", "g"];

/** Loads text encoders of the host as one clip; the same errors as `loadHostFile`. */
export async function joinedClips(
  files: NamedInput,
  loading: Loading,
  settings?: Readonly<Record<string, string>>,
): Promise<Clip> {
  const clips: Clip[] = [];
  for (const [input, name] of Object.entries(files))
    clips.push(await loadHostFile("text_encoders", { [input]: name }, loading, settings));
  return joined(clips);
}

function joined(clips: readonly Clip[]): Clip {
  if (clips.length > 1 && clips.some(({ encodeText }) => encodeText !== undefined)) {
    const message =
      "Text encoders: expected CLIP's alone, received one that reads prompts whole: load it with CLIPLoader.";
    throw new LatentkitError("value.invalid", message);
  }
  const rank = (name: string): number => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  const encoders = clips.flatMap((clip) => clip.encoders).sort((a, b) => rank(a.name) - rank(b.name));
  const hasLayers = clips.every((clip) => clip.atLayer !== undefined);
  return { encoders, atLayer: hasLayers ? (layer) => joined(clips.map((clip) => clip.atLayer!(layer))) : undefined };
}

// decision 322
/**
 * Encodes texts for encoders beyond CLIP's, by their names, with the pictures that these see. Fails with host.missing where
 * the host's clips have no such encoders.
 */
export async function encodeTexts(
  clip: Clip,
  texts: Readonly<Record<string, string>>,
  host: Host,
  pictures: readonly Tensor[] = [],
): Promise<Conditioning> {
  if (clip.encodeTexts !== undefined) return clip.encodeTexts(texts, pictures);
  const names = Object.keys(texts);
  throw lacking(host, `no clip with the ${names.length === 1 ? "encoder" : "encoders"} ${names.join(", ")}`);
}
