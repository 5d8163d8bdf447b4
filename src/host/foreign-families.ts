type NamedFamily = readonly [name: string, pattern: RegExp];

/** Families of models that run elsewhere, by words in their architecture or their files' names; the more specific first. */
const FOREIGN: readonly NamedFamily[] = [
  // the type "lumina2" of text encoders is Z-Image's too
  ["Lumina 2", /lumina[_-]/],
  ["HiDream", /hidream/],
  ["Hunyuan", /hunyuan|hyvid/],
  ["Wan", /(?:^|[^a-z])wan(?:[^a-z]|$)/],
  ["LTX Video", /ltx/],
  ["Cosmos", /cosmos/],
  ["AuraFlow", /aura/],
];
/** Families that run here in other formats. */
const OWN: readonly NamedFamily[] = [
  ["SDXL", /sd.?xl/],
  ["Stable Diffusion 3", /sd3|sd_3|stable-diffusion-3/],
  ["Stable Diffusion 1", /sd1|v1-5/],
  ["Z-Image", /z.?image|lumina2/],
  ["Qwen-Image", /qwen.?image/],
  ["Chroma", /chroma/],
  ["Flux.2", /flux[._-]?2/],
  ["Flux", /flux/],
];
const FAMILIES: readonly NamedFamily[] = [
  ...FOREIGN,
  ["T5", /t5|umt5/],
  ...OWN,
  ["a language model", /llama|qwen|gemma|mistral/],
];
/** Whether a name is that of a GGUF file. */
export const isGguf = (name: string): boolean => /\.gguf$/i.test(name);

/** Family of a GGUF file, by its architecture, else by its name; "GGUF file" if neither is known. */
export function ggufFamily(name: string, architecture = ""): string {
  for (const text of [architecture.toLowerCase(), bareName(name)]) {
    const found = FAMILIES.find(([, pattern]) => pattern.test(text));
    if (found !== undefined) return found[0];
  }
  return "GGUF file";
}

/** Family of models that run elsewhere, by a file's name or the type of a text encoder; undefined for any other. */
export function foreignFamily(name: string): string | undefined {
  const bare = bareName(name);
  if (OWN.some(([, pattern]) => pattern.test(bare))) return undefined;
  return FOREIGN.find(([, pattern]) => pattern.test(bare))?.[0];
}

const bareName = (name: string): string =>
  name.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1).toLowerCase();
