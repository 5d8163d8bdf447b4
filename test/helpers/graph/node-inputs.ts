import { createPreviewHost, modelSampling, registry, Tensor } from "latentkit";

export type Inputs = Record<string, unknown>;

/** One good value of each type that travels between nodes. */
export function goodValue(type: string): unknown {
  const host = createPreviewHost();
  const values: Record<string, () => unknown> = {
    IMAGE: () => Tensor.full([1, 16, 16, 3], 0.5),
    MASK: () => Tensor.full([1, 16, 16], 0.5),
    LATENT: () => ({ samples: Tensor.full([1, 4, 2, 2], 0.5) }),
    CONDITIONING: () => [[Tensor.zeros([1, 77, 8]), {}]],
    PIPE_LINE: () => ({ loader_settings: {} }),
    MODEL: () => ({ sampling: modelSampling("sd15") }),
    VAE: () => ({ encode: () => undefined, decode: () => undefined }),
    CLIP: () => ({ encoders: [{}] }),
    SAMPLER: () => ({ sampler: "euler", options: {} }),
    SIGMAS: () => Tensor.from([2, 1, 0], [3]),
    NOISE: () => ({ seed: 1n, enabled: true }),
    GUIDER: () => ({ kind: "basic", model: { sampling: modelSampling("sd15") }, positive: [] }),
    CONTROL_NET: () => ({}),
    UPSCALE_MODEL: () => ({ scale: 2, upscale: () => undefined }),
    CLIP_VISION: () => ({ encode: () => undefined }),
    CLIP_VISION_OUTPUT: () => ({}),
    IPADAPTER: () => ({ isSdxl: false, embed: () => undefined, show: () => undefined }),
    EMBEDS: () => Tensor.full([1, 4], 0.5),
    INSIGHTFACE: () => ({}),
    STYLE_MODEL: () => ({ tokens: () => undefined }),
    GLIGEN: () => ({}),
    MODEL_PATCH: () => ({}),
    LIST: () => ["a"],
    "*": () => 1,
    INT: () => 64,
    FLOAT: () => 0.5,
    STRING: () => "a",
    BOOLEAN: () => true,
    COMBO: () => host.checkpoints()[0],
  };
  const make = values[type];
  if (make === undefined) throw new Error(`no good value of type ${type}`);
  return make();
}

/** A good value for each input of a node, the optional ones too. */
export function goodInputs(key: string): Inputs {
  const { inputs } = registry.get(key)!;
  return Object.fromEntries(
    Object.entries(inputs).map(([name, { type, choices, options }]) => [
      name,
      Array.isArray(choices) ? choices[0] : (options.default ?? goodValue(type)),
    ]),
  );
}
