import { describe, LatentkitError } from "../../../base/errors.js";
import { encodePlain } from "../../prompt/encode.js";
import type { Clip, Conditioning } from "../../types.js";
import { CheckpointClip } from "../text-encoder/model.js";
import type { BuiltT5 } from "../text-encoder/t5.js";

/** Fewest tokens of a prompt for Flux, with padding. */
const FEWEST_TOKENS = 256;
const NAMES = ["clip_l", "t5xxl"] as const;

/** The clip of Flux.1: T5 makes the context, CLIP-L the pooled text. */
export class FluxClip implements Clip {
  readonly encoders = [];

  constructor(
    readonly clipL: CheckpointClip,
    readonly t5: BuiltT5,
  ) {}

  encodeText(text: string): Promise<Conditioning> {
    return this.encodeTexts({ clip_l: text, t5xxl: text });
  }

  /** Encodes a text for each encoder. Fails with value.invalid for other encoders. */
  async encodeTexts(texts: Readonly<Record<string, string>>): Promise<Conditioning> {
    const [clipL, t5] = NAMES.map((name) => (Object.hasOwn(texts, name) ? texts[name] : undefined));
    if (clipL === undefined || t5 === undefined || Object.keys(texts).length > NAMES.length) {
      const received = Object.keys(texts).map(describe).join(", ");
      const message = `Prompt: expected a text for each of Flux's encoders, ${NAMES.join(" and ")}, received ${received}.`;
      throw new LatentkitError("value.invalid", message);
    }
    const context = await this.t5.encode(t5, FEWEST_TOKENS);
    const pooled = await encodePlain(this.clipL, clipL);
    return [[context, { pooled_output: pooled[0]![1].pooled_output }]];
  }
}

/** A T5 encoder in a separate file, which Flux takes beside CLIP-L. */
export class T5Clip implements Clip {
  readonly encoders = [];

  constructor(readonly t5: BuiltT5) {}

  async encodeText(): Promise<never> {
    throw this.#alone("alone");
  }

  joinedWith(others: readonly Clip[]): FluxClip {
    const [first] = others;
    const isClipL = first instanceof CheckpointClip && first.encoders.length === 1 && first.encoders[0]!.name === "l";
    if (others.length === 1 && isClipL) return new FluxClip(first, this.t5);
    throw this.#alone(
      `with ${others.flatMap((clip) => clip.encoders.map(({ name }) => name)).join(" and ") || "another"}`,
    );
  }

  #alone(how: string): LatentkitError {
    const message = `${this.t5.part.label} needs CLIP-L: load both with DualCLIPLoader and type "flux". It was loaded ${how}.`;
    return new LatentkitError("value.invalid", message);
  }
}
