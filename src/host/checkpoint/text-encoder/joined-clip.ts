import { describe, LatentkitError } from "../../../base/errors.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { encodePlain } from "../../prompt/encode.js";
import type { Clip, Conditioning } from "../../types.js";
import type { T5Lengths } from "../tokenizer/t5.js";
import { type BuiltTextEncoder, CheckpointClip } from "./model.js";
import type { StableDiffusionFamily } from "./recognise.js";
import type { BuiltT5 } from "./t5.js";

/** Names that nodes have for the texts of encoders. */
const TEXTS = { l: "clip_l", g: "clip_g", t5: "t5xxl" } as const;
const WORDS = { l: "CLIP-L", g: "CLIP-G", t5: "T5" } as const;
type EncoderName = keyof typeof TEXTS;

/** Text encoders of a clip that are loaded. */
export interface JoinedEncoders {
  readonly l?: BuiltTextEncoder;
  readonly g?: BuiltTextEncoder;
  readonly t5?: BuiltT5;
}

/** A prompt as each of them encodes it. */
export interface Encodings {
  readonly l?: Conditioning[number];
  readonly g?: Conditioning[number];
  readonly t5?: Tensor;
}

/** How a family takes CLIP's encoders and T5. */
export interface JoinedFamily {
  readonly name: string;
  /** Name in the input `type` of loaders. */
  readonly type: string;
  readonly encoders: readonly EncoderName[];
  /** Whether a prompt can be encoded without one of them. */
  readonly isPartial: boolean;
  /** Fewest tokens of T5, with padding. */
  readonly fewest: number;
  /** Whether the empty prompt that weights of T5's tokens are measured from has an end token. */
  readonly emptyEnds: boolean;
  /** Family of Stable Diffusion whose layers of CLIP's encoders count. */
  readonly clipFamily: StableDiffusionFamily;
  /** Whether nodes may ask for another layer of them. */
  readonly hasLayers: boolean;
  combine(encodings: Encodings): Conditioning[number];
  /** Widths that a context may have, of the encoders' own; none if one is missing that it needs. */
  contextWidths(widths: { readonly l?: number; readonly g?: number; readonly t5?: number }): readonly number[];
  /** Width of the pooled text, of CLIP's encoders with theirs; undefined if there is none. */
  pooledWidth(widths: { readonly l?: number; readonly g?: number }): number | undefined;
}

interface JoinedOptions {
  /** Layer of CLIP's encoders that a node asks for. */
  readonly layer?: number;
  /** Lengths of T5's prompts that a node asks for. */
  readonly lengths?: T5Lengths;
}

/** A clip of CLIP's encoders and T5, from one file or several. */
export class JoinedClip implements Clip {
  readonly encoders = [];
  readonly atLayer?: (layer: number) => JoinedClip;

  constructor(
    readonly family: JoinedFamily,
    readonly networks: JoinedEncoders,
    readonly options: JoinedOptions = {},
  ) {
    if (family.hasLayers)
      this.atLayer = (layer) => {
        for (const clip of this.#clips()) clip.atLayer(layer);
        return new JoinedClip(family, networks, { ...options, layer });
      };
  }

  encodeText(text: string): Promise<Conditioning> {
    return this.encodeTexts(Object.fromEntries(this.family.encoders.map((name) => [TEXTS[name], text])));
  }

  /**
   * Encodes a text for each encoder by its name; without one an encoder of CLIP's is left out, and T5 reads its end token
   * alone. Fails with value.invalid for other names, and if an encoder is missing that the family needs.
   */
  async encodeTexts(texts: Readonly<Record<string, string>>): Promise<Conditioning> {
    const { name, encoders, isPartial, fewest, emptyEnds, combine } = this.family;
    const expected = encoders.map((each) => TEXTS[each]);
    const received = Object.keys(texts);
    const isFit = received.every((each) => expected.some((one) => one === each));
    if (!isFit || (!isPartial && received.length < expected.length)) {
      const message = `Prompt: expected a text for each of ${name}'s encoders, ${list(expected)}, received ${received.map(describe).join(", ")}.`;
      throw new LatentkitError("value.invalid", message);
    }
    this.#requireEncoders();
    const { l, g, t5 } = this.networks;
    const ofClip = async (network: BuiltTextEncoder | undefined, text: string | undefined) =>
      network === undefined || text === undefined ? undefined : (await encodePlain(this.#clip(network), text))[0];
    const { [TEXTS.t5]: text } = texts;
    const lengths = text === undefined ? { fewest: 1 } : (this.options.lengths ?? { fewest });
    const context = await t5?.encode(text ?? "", lengths, emptyEnds);
    return [combine({ l: await ofClip(l, texts[TEXTS.l]), g: await ofClip(g, texts[TEXTS.g]), t5: context })];
  }

  joinedWith(others: readonly Clip[]): JoinedClip {
    let { networks } = this;
    for (const other of others) {
      const own: JoinedEncoders = other instanceof JoinedClip && other.family === this.family ? other.networks : {};
      const names = Object.keys(own);
      if (names.length === 0 || names.some((name) => Object.hasOwn(networks, name)))
        throw this.#unfit([...namesOf(networks), ...(names.length === 0 ? ["another"] : namesOf(own))]);
      networks = { ...networks, ...own };
    }
    return new JoinedClip(this.family, networks, this.options);
  }

  withT5Options({ min_padding: padding, min_length: fewest }: { min_padding: number; min_length: number }): JoinedClip {
    return new JoinedClip(this.family, this.networks, { ...this.options, lengths: { padding, fewest } });
  }

  /** The clip with changed networks. */
  changed(change: <Network extends BuiltTextEncoder | BuiltT5>(network: Network) => Network): JoinedClip {
    const { l, g, t5 } = this.networks;
    const networks: JoinedEncoders = {
      ...(l && { l: change(l) }),
      ...(g && { g: change(g) }),
      ...(t5 && { t5: change(t5) }),
    };
    return new JoinedClip(this.family, networks, this.options);
  }

  #clip(network: BuiltTextEncoder): CheckpointClip {
    return new CheckpointClip({ encoders: [network], family: this.family.clipFamily, layer: this.options.layer });
  }

  #clips(): CheckpointClip[] {
    const { l, g } = this.networks;
    return [l, g].flatMap((network) => (network === undefined ? [] : [this.#clip(network)]));
  }

  #requireEncoders(): void {
    const { encoders, isPartial } = this.family;
    if (!isPartial && encoders.some((name) => this.networks[name] === undefined))
      throw this.#unfit(namesOf(this.networks));
  }

  #unfit(received: readonly string[]): LatentkitError {
    const { name, type, encoders, isPartial } = this.family;
    const needs = `${isPartial ? "each of " : ""}${list(encoders.map((each) => WORDS[each]))}`;
    const message = `Text encoders of ${name}: expected ${needs} once, with type "${type}", received ${list(received)}.`;
    return new LatentkitError("value.invalid", message);
  }
}

const namesOf = (networks: JoinedEncoders): string[] =>
  (Object.keys(networks) as EncoderName[]).map((name) => WORDS[name]);

const list = (names: readonly string[]): string =>
  names.length === 1 ? names[0]! : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
