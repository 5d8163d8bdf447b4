import type { ControlNet } from "../types.js";
import type { ModelPart } from "./model-part.js";
import type { ControlNetConfig } from "./networks/controlnet.js";

/** A ControlNet of a file; models of the same host run it. */
export class CheckpointControlNet implements ControlNet {
  readonly part: ModelPart<ControlNetConfig>;
  /** Whether its weights are differences to those of the UNet that it is used with. */
  readonly isDifference: boolean;

  constructor(part: ModelPart<ControlNetConfig>, isDifference: boolean) {
    this.part = part;
    this.isDifference = isDifference;
  }

  /** One kind of picture: the net decides. */
  ofType(): ControlNet {
    return this;
  }
}
