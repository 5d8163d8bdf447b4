import { type ModelHeader, type Part, unwrappedFile } from "../recognition/part.js";
import { type ControlNetPart, controlNetPart, hasControlNet } from "./control.js";
import { CONTROL_LORA_MARK, type ControlLoraPart, controlLoraPart } from "./control-lora.js";
import { hasT2iAdapter, type T2iConfig, t2iAdapterPart } from "./t2i-adapter.js";

/** A file that guides a UNet by a picture. */
export type RecognisedControl =
  | { readonly kind: "net"; readonly part: ControlNetPart }
  | { readonly kind: "lora"; readonly part: ControlLoraPart }
  | { readonly kind: "t2i"; readonly part: Part<T2iConfig> };

/** Recognises a ControlNet, a Control-LoRA or a T2I-Adapter. Throws model.unsupported for other files, and model.invalid. */
export function recogniseControl(whole: ModelHeader): RecognisedControl {
  const file = unwrappedFile(whole, (weights) => hasControlNet(weights) || hasT2iAdapter(weights));
  if (file.weights.has(CONTROL_LORA_MARK)) return { kind: "lora", part: controlLoraPart(file) };
  if (!hasControlNet(file.weights) && hasT2iAdapter(file.weights)) return { kind: "t2i", part: t2iAdapterPart(file) };
  return { kind: "net", part: controlNetPart(whole) };
}
