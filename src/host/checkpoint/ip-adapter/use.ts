import type { Tensor } from "../../../tensor/tensor.js";
import type { ShownPictures } from "../../types.js";
import type { ModelPart } from "../session/model-part.js";
import type { KeysConfig } from "./build.js";

/** An IPAdapter of a file, with the tokens of the pictures that it shows. */
export interface AdapterUse extends Omit<ShownPictures, "embeds" | "negative"> {
  readonly keys: ModelPart<KeysConfig>;
  readonly isSdxl: boolean;
  /** [n, tokens, contextDim] */
  readonly tokens: Tensor;
  /** [n, tokens, contextDim] */
  readonly negativeTokens: Tensor;
}
