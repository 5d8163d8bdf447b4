import { defineNode } from "../define.js";
import { fileName, joinedClips, type Loading } from "../host-files.js";
import { choice } from "../inputs.js";

/** Families of models by ComfyUI's names: those of one text encoder, then those of two. */
const CLIP_FAMILIES = [
  "stable_diffusion",
  "stable_cascade",
  "sd3",
  "stable_audio",
  "mochi",
  "ltxv",
  "pixart",
  "cosmos",
  "lumina2",
  "wan",
  "hidream",
  "chroma",
  "ace",
  "omnigen2",
  "qwen_image",
  "hunyuan_image",
  "flux2",
  "ovis",
  "longcat_image",
  "minimax",
  "krea2",
  "ideogram4",
  "cogvideox",
  "ernie_image",
];

const DUAL_CLIP_FAMILIES = [
  "sdxl",
  "sd3",
  "flux",
  "hunyuan_video",
  "hidream",
  "hunyuan_image",
  "hunyuan_video_15",
  "kandinsky5",
  "kandinsky5_image",
  "ltxv",
  "newbie",
  "ace",
];

const clipFile = () => fileName("text_encoders");
const device = () =>
  choice(["default", "cpu"], { optional: true, tooltip: "No effect: the host decides where it computes." });

/** A node's run that loads the files of all its inputs but `type` and `device` as one clip. */
async function loadClip(inputs: Readonly<Record<string, unknown>>, loading: Loading) {
  const { type, device: _, ...files } = inputs as Readonly<Record<string, string>>;
  return { CLIP: await joinedClips(files, loading, type === undefined ? undefined : { type }) };
}

/** The same for SD 3, whose loader of three files does not have an input `type`. */
const loadSd3Clip: typeof loadClip = (files, loading) => loadClip({ ...files, type: "sd3" }, loading);

export const clipLoaderNodes = [
  defineNode({
    key: "CLIPLoader",
    displayName: "Load CLIP",
    category: "advanced/loaders",
    description: "Loads a text encoder of the host.",
    inputs: { clip_name: clipFile(), type: choice(CLIP_FAMILIES), device: device() },
    outputs: { CLIP: "CLIP" },
    run: loadClip,
  }),
  defineNode({
    key: "DualCLIPLoader",
    category: "advanced/loaders",
    description: "Loads two text encoders of the host as one clip.",
    inputs: { clip_name1: clipFile(), clip_name2: clipFile(), type: choice(DUAL_CLIP_FAMILIES), device: device() },
    outputs: { CLIP: "CLIP" },
    run: loadClip,
  }),
  defineNode({
    key: "TripleCLIPLoader",
    category: "advanced/loaders",
    description: "Loads three text encoders of the host as one clip, as SD 3 has them.",
    inputs: { clip_name1: clipFile(), clip_name2: clipFile(), clip_name3: clipFile() },
    outputs: { CLIP: "CLIP" },
    run: loadSd3Clip,
  }),
  defineNode({
    key: "QuadrupleCLIPLoader",
    category: "advanced/loaders",
    description: "Loads four text encoders of the host as one clip, as HiDream has them.",
    inputs: { clip_name1: clipFile(), clip_name2: clipFile(), clip_name3: clipFile(), clip_name4: clipFile() },
    outputs: { CLIP: "CLIP" },
    run: loadClip,
  }),
  defineNode({
    key: "CLIPLoaderGGUF",
    displayName: "CLIPLoader (GGUF)",
    category: "advanced/loaders",
    description: "Loads a text encoder of the host, as CLIPLoader does.",
    inputs: { clip_name: clipFile(), type: choice(CLIP_FAMILIES) },
    outputs: { CLIP: "CLIP" },
    run: loadClip,
  }),
  defineNode({
    key: "DualCLIPLoaderGGUF",
    displayName: "DualCLIPLoader (GGUF)",
    category: "advanced/loaders",
    description: "Loads two text encoders of the host as one clip, as DualCLIPLoader does.",
    inputs: { clip_name1: clipFile(), clip_name2: clipFile(), type: choice(DUAL_CLIP_FAMILIES) },
    outputs: { CLIP: "CLIP" },
    run: loadClip,
  }),
  defineNode({
    key: "TripleCLIPLoaderGGUF",
    displayName: "TripleCLIPLoader (GGUF)",
    category: "advanced/loaders",
    description: "Loads three text encoders of the host as one clip, as TripleCLIPLoader does.",
    inputs: { clip_name1: clipFile(), clip_name2: clipFile(), clip_name3: clipFile() },
    outputs: { CLIP: "CLIP" },
    run: loadSd3Clip,
  }),
] as const;
