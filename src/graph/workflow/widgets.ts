import type { NodeDefinition } from "../../nodes/define.js";
import type { InputSpec } from "../../nodes/inputs.js";
import { defaultOf } from "../../nodes/values.js";
import { SEED_INPUTS } from "../parse.js";
import type { EditorNode } from "./document.js";

/** Types whose inputs are widgets in the editor; all others are sockets. */
const WIDGET_TYPES: ReadonlySet<string> = new Set(["INT", "FLOAT", "STRING", "BOOLEAN", "COMBO"]);
/** Widget after a seed, which is not an input: what happens to the seed after each run. */
const AFTER_RUN_WIDGET = "control_after_generate";
const AFTER_RUN: ReadonlySet<unknown> = new Set(["fixed", "increment", "decrement", "randomize"]);

export interface Widget {
  readonly name: string;
  /** INT … COMBO if the file says so. */
  readonly type: string;
  readonly isSeed: boolean;
}

const isWidget = ({ type, options }: InputSpec): boolean => WIDGET_TYPES.has(type) && options.forceInput !== true;

/**
 * Widgets of a node in the editor's order: its class's, required inputs first, unless the file names them all, as newer
 * editors do; of an unknown class, those that the file names.
 */
function widgetsOf(node: EditorNode, definition: NodeDefinition | undefined): Widget[] {
  const known = knownWidgets(node, definition);
  // an older file lists only those that take a link
  const isNewer =
    known === undefined || node.inputs.some(({ widget, link }) => widget !== undefined && link === undefined);
  return isNewer && listsWidgets(node, definition) ? namedWidgets(node) : (known ?? namedWidgets(node));
}

/** Widgets of a node that its class had when the file was saved, as far as its values show. */
export function savedWidgets(node: EditorNode, definition: NodeDefinition | undefined): Widget[] {
  const widgets = widgetsOf(node, definition);
  return node.values.length === 0 ? widgets : widgets.slice(0, assignValues(widgets, node.values).byName.size);
}

function knownWidgets({ type }: EditorNode, definition: NodeDefinition | undefined): Widget[] | undefined {
  return definition === undefined ? coreWidgets(type)?.map(plainWidget) : classWidgets(definition);
}

const plainWidget = (name: string): Widget => ({ name, type: "*", isSeed: SEED_INPUTS.has(name) });

function classWidgets({ inputs }: NodeDefinition): Widget[] {
  const specs = Object.entries(inputs).filter(([, spec]) => isWidget(spec));
  const ordered = [...specs.filter(([, { optional }]) => !optional), ...specs.filter(([, { optional }]) => optional)];
  return ordered.map(([name, { type, options }]) => ({
    name,
    type,
    isSeed: (SEED_INPUTS.has(name) && type === "INT") || options.control_after_generate === true,
  }));
}

/** Whether the inputs of a node list all widgets that its class had when the file was saved. */
export function listsWidgets(node: EditorNode, definition: NodeDefinition | undefined): boolean {
  const named = namedWidgets(node);
  const names = new Set(named.map(({ name }) => name));
  if (knownWidgets(node, definition)?.every(({ name }) => names.has(name))) return true;
  // a class that has gained a widget since: the widgets listed are as many as the values
  const { values } = node;
  return values.length > 0 && values.slice(assignValues(named, values).next).every(isOfButton);
}

/** Whether a name is that of a widget of a class. */
export const hasWidget = (definition: NodeDefinition | undefined, name: string): boolean =>
  definition !== undefined && Object.hasOwn(definition.inputs, name) && isWidget(definition.inputs[name]!);

/** Widgets that the file names among a node's inputs: all of them in files of newer editors. */
export const namedWidgets = ({ inputs }: EditorNode): Widget[] =>
  inputs
    .filter(({ widget }) => widget !== undefined)
    .map(({ widget, type }) => ({ name: widget!, type, isSeed: SEED_INPUTS.has(widget!) }));

/**
 * Values of a node's widgets by name, with defaults for those that its class gained after the file was saved, as the
 * editor shows them.
 */
export function widgetValues(node: EditorNode, definition: NodeDefinition | undefined): Map<string, unknown> {
  const values = storedValues(node, definition);
  for (const [name, value] of values)
    if (value === undefined || (value === null && definition !== undefined)) values.delete(name);
  for (const [name, spec] of Object.entries(definition?.inputs ?? {})) {
    if (values.has(name) || spec.optional || !isWidget(spec)) continue;
    const value = defaultOf(spec);
    if (value !== undefined) values.set(name, value);
  }
  return values;
}

/** Values of a node: those that the file names, and for the others those of its list, if there is one. */
function storedValues(node: EditorNode, definition: NodeDefinition | undefined): Map<string, unknown> {
  const listed = assignValues(widgetsOf(node, definition), node.values).byName;
  if (node.named === undefined) return listed;
  const known = definition && new Set([...classWidgets(definition), ...namedWidgets(node)].map(({ name }) => name));
  const named = namesOf(node).filter((name) => known?.has(name) ?? true);
  // a class may have gained a widget since: the place of a value in the list is certain only if there are more
  const stored = named.length < listed.size ? listed : new Map<string, unknown>();
  for (const name of named)
    if (isHole(stored.get(name)) || !isHole(node.named[name])) stored.set(name, node.named[name]);
  return stored;
}

/** Names of the widgets whose values the file names. */
const namesOf = ({ named = {} }: EditorNode): string[] =>
  Object.keys(named).filter((name) => name !== AFTER_RUN_WIDGET);

const isHole = (value: unknown): boolean => value === undefined || value === null;

/** Whether the file, or a known class, says which value of a node belongs to which widget. */
export function namesValues(node: EditorNode, definition: NodeDefinition | undefined): boolean {
  const { values, named, type } = node;
  if (definition !== undefined || coreWidgets(type) !== undefined) return true;
  if (named !== undefined && values.filter(isInputValue).length <= namesOf(node).length) return true;
  return !values.slice(assignValues(namedWidgets(node), values).next).some(isInputValue);
}

/** Gives values to widgets in order, from the value `start`; `next` is the first that is left. */
export function assignValues(
  widgets: readonly Widget[],
  values: readonly unknown[],
  start = 0,
): { byName: Map<string, unknown>; next: number } {
  const byName = new Map<string, unknown>();
  let next = start;
  for (const [index, { name, type, isSeed }] of widgets.entries()) {
    if (next >= values.length) break;
    byName.set(name, values[next++]);
    if (isSeed || type === "INT") next += afterRun(values, next, { widgets, index: index + 1 }, isSeed);
  }
  return { byName, next };
}

/** Returns 1 if a value belongs to the widget behind a seed, else 0. */
function afterRun(
  values: readonly unknown[],
  at: number,
  { widgets, index }: { readonly widgets: readonly Widget[]; readonly index: number },
  isSeed: boolean,
): number {
  const value = values[at];
  const following = widgets[index]?.type;
  const hasMore = values.length - at > widgets.length - index;
  if (AFTER_RUN.has(value)) return isSeed || (following !== "STRING" && following !== "COMBO") ? 1 : 0;
  // files of 2023 have true or false there
  if (isSeed && typeof value === "boolean") return following !== "BOOLEAN" || hasMore ? 1 : 0;
  return isSeed && at < values.length && isHole(value) && hasMore ? 1 : 0;
}

/** Values behind the last widget belong to buttons, such as the one that uploads a file. */
const isInputValue = (value: unknown): boolean =>
  value !== null && value !== "" && value !== "image" && typeof value !== "object" && !AFTER_RUN.has(value);
const isOfButton = (value: unknown): boolean => value === undefined || value === null || value === "image";

/**
 * Widgets of ComfyUI's core classes that latentkit lacks, in the editor's order: their workflows convert too,
 * and then it is clear which nodes are missing.
 */
const CORE_WIDGETS: Readonly<Record<string, string>> = {
  APG: "eta norm_threshold momentum",
  AudioAdjustVolume: "volume",
  AudioConcat: "direction",
  AudioEncoderLoader: "audio_encoder_name",
  AudioMerge: "merge_method",
  CaseConverter: "string mode",
  CheckpointSave: "filename_prefix",
  ChromaRadianceOptions: "preserve_wrapper start_sigma end_sigma nerf_tile_size",
  CLIPAttentionMultiply: "q k v out",
  CLIPMergeSimple: "ratio",
  CLIPMergeSubtract: "multiplier",
  CLIPSave: "filename_prefix",
  CLIPTextEncodeControlnet: "text",
  CLIPTextEncodeHunyuanDiT: "bert mt5xl",
  CLIPTextEncodeLumina2: "system_prompt user_prompt",
  CLIPTextEncodePixArtAlpha: "width height text",
  ConditioningSetAreaPercentageVideo: "width height temporal x y z strength",
  ConditioningSetProperties: "strength set_cond_area",
  ConditioningSetPropertiesAndCombine: "strength set_cond_area",
  ConditioningStableAudio: "seconds_start seconds_total",
  ConditioningTimestepsRange: "start_percent end_percent",
  ContextWindowsManual: "context_length context_overlap context_schedule context_stride closed_loop fuse_method dim",
  CosmosImageToVideoLatent: "width height length batch_size",
  CosmosPredict2ImageToVideoLatent: "width height length batch_size",
  CreateHookKeyframe: "strength_mult start_percent",
  CreateHookKeyframesFromFloats: "floats_strength start_percent end_percent print_keyframes",
  CreateHookKeyframesInterpolated:
    "strength_start strength_end interpolation start_percent end_percent keyframes_count print_keyframes",
  CreateHookLora: "lora_name strength_model strength_clip",
  CreateHookLoraModelOnly: "lora_name strength_model",
  CreateHookModelAsLora: "ckpt_name strength_model strength_clip",
  CreateHookModelAsLoraModelOnly: "ckpt_name strength_model",
  CreateVideo: "fps",
  DiffusersLoader: "model_path",
  EasyCache: "reuse_threshold start_percent end_percent verbose",
  EmptyAceStepLatentAudio: "seconds batch_size",
  EmptyAudio: "duration sample_rate channels",
  EmptyChromaRadianceLatentImage: "width height batch_size",
  EmptyCosmosLatentVideo: "width height length batch_size",
  EmptyHunyuanImageLatent: "width height batch_size",
  EmptyHunyuanLatentVideo: "width height length batch_size",
  EmptyLTXVLatentVideo: "width height length batch_size",
  EmptyLatentAudio: "seconds batch_size",
  EmptyLatentHunyuan3Dv2: "resolution batch_size",
  EmptyMochiLatentVideo: "width height length batch_size",
  FreSca: "scale_low scale_high freq_cutoff",
  GITSScheduler: "coeff steps denoise",
  HunyuanImageToVideo: "width height length batch_size guidance_type",
  HunyuanRefinerLatent: "noise_augmentation",
  ImageOnlyCheckpointSave: "filename_prefix",
  LatentCutToBatch: "dim slice_size",
  LatentOperationSharpen: "sharpen_radius sigma alpha",
  LatentOperationTonemapReinhard: "multiplier",
  LazyCache: "reuse_threshold start_percent end_percent verbose",
  LoadAudio: "audio",
  LoadImageOutput: "image",
  LoadVideo: "file",
  LoraModelLoader: "strength_model",
  LoraSave: "filename_prefix lora_type rank bias_diff",
  LTXVAddGuide: "frame_idx strength",
  LTXVConditioning: "frame_rate",
  LTXVImgToVideo: "width height length batch_size strength",
  LTXVPreprocess: "img_compression",
  LTXVScheduler: "steps max_shift base_shift stretch terminal",
  ModelComputeDtype: "dtype",
  ModelSamplingLTXV: "max_shift base_shift",
  ModelSave: "filename_prefix",
  OptimalStepsScheduler: "model_type steps denoise",
  PairConditioningSetProperties: "strength set_cond_area",
  PairConditioningSetPropertiesAndCombine: "strength set_cond_area",
  PhotoMakerEncode: "text",
  PhotoMakerLoader: "photomaker_model_name",
  RegexExtract: "string regex_pattern mode case_insensitive multiline dotall group_index",
  RegexMatch: "string regex_pattern case_insensitive multiline dotall",
  RegexReplace: "string regex_pattern replace case_insensitive multiline dotall count",
  ReplaceVideoLatentFrames: "index",
  ResizeAndPadImage: "target_width target_height padding_color interpolation",
  SamplerLCMUpscale: "scale_ratio scale_steps upscale_method",
  SaveAnimatedPNG: "filename_prefix fps compress_level",
  SaveAnimatedWEBP: "filename_prefix fps lossless quality method",
  SaveAudio: "filename_prefix",
  SaveAudioMP3: "filename_prefix quality",
  SaveAudioOpus: "filename_prefix quality",
  SaveGLB: "filename_prefix",
  SaveSVGNode: "filename_prefix",
  SaveVideo: "filename_prefix format codec",
  SaveWEBM: "filename_prefix codec fps crf",
  SD_4XUpscale_Conditioning: "scale_ratio noise_augmentation",
  SetClipHooks: "apply_to_conds schedule_clip",
  SkipLayerGuidanceDiTSimple: "double_layers single_layers start_percent end_percent",
  StableCascade_EmptyLatentImage: "width height compression batch_size",
  StableCascade_StageC_VAEEncode: "compression",
  StableZero123_Conditioning: "width height batch_size elevation azimuth",
  StableZero123_Conditioning_Batched:
    "width height batch_size elevation azimuth elevation_batch_increment azimuth_batch_increment",
  StringCompare: "string_a string_b mode case_sensitive",
  StringContains: "string substring case_sensitive",
  StringLength: "string",
  StringReplace: "string find replace",
  StringSubstring: "string start end",
  StringTrim: "string mode",
  SV3D_Conditioning: "width height video_frames elevation",
  SVD_img2vid_Conditioning: "width height video_frames motion_bucket_id fps augmentation_level",
  TextEncodeAceStepAudio: "tags lyrics lyrics_strength",
  TextEncodeHunyuanVideo_ImageToVideo: "prompt image_interleave",
  TorchCompileModel: "backend",
  TrimAudioDuration: "start_index duration",
  TrimVideoLatent: "trim_amount",
  UNetCrossAttentionMultiply: "q k v out",
  UNetSelfAttentionMultiply: "q k v out",
  UNetTemporalAttentionMultiply: "self_structural self_temporal cross_structural cross_temporal",
  VAEDecodeHunyuan3D: "num_chunks octree_resolution",
  VAESave: "filename_prefix",
  VideoLinearCFGGuidance: "min_cfg",
  VideoTriangleCFGGuidance: "min_cfg",
  VoxelToMesh: "algorithm threshold",
  VoxelToMeshBasic: "threshold",
  Wan22FunControlToVideo: "width height length batch_size",
  Wan22ImageToVideoLatent: "width height length batch_size",
  WanAnimateToVideo: "width height length batch_size continue_motion_max_frames video_frame_offset",
  WanCameraEmbedding: "camera_pose width height length speed fx fy cx cy",
  WanCameraImageToVideo: "width height length batch_size",
  WanContextWindowsManual: "context_length context_overlap context_schedule context_stride closed_loop fuse_method",
  WanFirstLastFrameToVideo: "width height length batch_size",
  WanFunControlToVideo: "width height length batch_size",
  WanFunInpaintToVideo: "width height length batch_size",
  WanHuMoImageToVideo: "width height length batch_size",
  WanImageToVideo: "width height length batch_size",
  WanPhantomSubjectToVideo: "width height length batch_size",
  WanSoundImageToVideo: "width height length batch_size",
  WanSoundImageToVideoExtend: "length",
  WanTrackToVideo: "tracks width height length batch_size temperature topk",
  WanVaceToVideo: "width height length batch_size strength",
};

/** Names of a core class's widgets; undefined for any other class. @internal */
export const coreWidgets = (type: string): readonly string[] | undefined =>
  Object.hasOwn(CORE_WIDGETS, type) ? CORE_WIDGETS[type]!.split(" ") : undefined;
