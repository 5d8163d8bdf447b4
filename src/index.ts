// The public API on one screen.
import "./base/package.js"; // first: in a bundle it throws the sentence that says what to do
import "./io/files/tensor-pictures.js"; // Tensor.fromImage and toPng

export { type ErrorCode, type ErrorDetails, LatentkitError } from "./base/errors.js";
export { createDiskCache, type DiskCache, type DiskCacheOptions } from "./graph/disk-cache/disk-cache.js";
export type { RunEvent } from "./graph/events.js";
export type { MetadataPolicy } from "./graph/job.js";
export { type Cache, type CacheOptions, createCache } from "./graph/memory/cache.js";
export { parseGraphText, printGraphText } from "./graph/parse.js";
export type { ModelSettings } from "./host/checkpoint/settings.js";
export type { Host, HostFiles, NamedModels, Provenance, RuntimeRecord } from "./host/host.js";
export { createPreviewHost, type PreviewHostOptions } from "./host/preview/index.js";
export { encodePrompt } from "./host/prompt/encode.js";
export type { PromptOptions } from "./host/prompt/options.js";
export { parsePrompt, type Segment } from "./host/prompt/parse.js";
export { type Token, tokenizePrompt } from "./host/prompt/tokenize.js";
export type {
  Checkpoint,
  Clip,
  ClipEncoder,
  ClipVision,
  Conditioning,
  Control,
  ControlNet,
  ImageAdapter,
  Latent,
  LoaderSettings,
  Lora,
  Model,
  ModelPatch,
  Pipe,
  ShownPictures,
  StyleModel,
  UpscaleModel,
  Vae,
} from "./host/types.js";
export type { PictureFormat } from "./io/pictures/format.js";
export { type DecodedImage, decodePng, encodePng, type PixelImage } from "./io/png/png.js";
export type { RawImage } from "./io/png/raw-image.js";
export { block, defineNode, type NodeContext, type NodeDefinition, type TypedNode } from "./nodes/define.js";
export { registry } from "./nodes/index.js";
export {
  any,
  boolean,
  choice,
  clip,
  conditioning,
  float,
  image,
  int,
  latent,
  list,
  mask,
  model,
  pipe,
  seed,
  socket,
  text,
  vae,
} from "./nodes/inputs.js";
export { type Invoked, type InvokeOptions, invokeNode } from "./nodes/invoke.js";
export { createRegistry, type Registry } from "./nodes/registry.js";
export { batch } from "./render/batch/batch.js";
export type { BatchOptions } from "./render/batch/batch-options.js";
export { type BatchCheck, checkBatch, type ItemFault } from "./render/batch/check.js";
export type { BatchEvent, BatchStatus } from "./render/batch/events.js";
export type { GridOptions } from "./render/contact-sheet/grid.js";
export type { GridAxes } from "./render/contact-sheet/grid-axes.js";
export { type PictureFile, type Pictures, picturesIn } from "./render/items/pictures.js";
export { type RenderOptions, render } from "./render/render.js";
export { createRenderer, type Renderer, type RendererJob, type RendererOptions } from "./render/renderer.js";
export type { RenderedFile, RenderResult } from "./render/result.js";
export { type GraphSchema, type GraphSchemaOptions, graphSchema } from "./render/schema/graph-schema.js";
export type { PropertySchema } from "./render/schema/property.js";
export { type ConvertOptions, convertWorkflow } from "./render/source.js";
export {
  type ExecuteGraphOptions,
  executeGraph,
  type ValidateGraphOptions,
  validateGraph,
} from "./render/surroundings.js";
export { type Device, type DeviceChoice, type DeviceReport, device } from "./tensor/device/device.js";
export {
  type Card,
  createGenerator,
  type Generator,
  type NoiseOptions,
  type NoiseSource,
  type RandnOptions,
  randn,
} from "./tensor/random.js";
export {
  type ModelSampling,
  type ModelSamplingName,
  modelSampling,
  type SamplingOverrides,
} from "./tensor/sampling/model-sampling.js";
export {
  SAMPLERS,
  type Sampler,
  SCHEDULERS,
  type ScheduleOptions,
  type Scheduler,
  sigmas,
} from "./tensor/sampling/sigmas.js";
export { type EncodePngOptions, Tensor, type TensorPngOptions } from "./tensor/tensor.js";
