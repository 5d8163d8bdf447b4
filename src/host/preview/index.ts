import { describe, LatentkitError, notOneOf } from "../../base/errors.js";
import { checkOptions, type OptionRules, VALUES } from "../../base/options.js";
import { LATENT_RGB } from "../../tensor/sampling/latent-format.js";
import { type ModelSamplingName, modelSampling } from "../../tensor/sampling/model-sampling.js";
import type { Host } from "../host.js";
import type { Checkpoint } from "../types.js";
import { previewClip } from "./clip.js";
import { previewModel } from "./model.js";
import { colourToLatent, previewVae } from "./vae.js";

/** Options of `createPreviewHost`. */
export interface PreviewHostOptions {
  /** Further checkpoint names, such as those in old graphs, with the family of each. */
  checkpoints?: Readonly<Record<string, string>>;
}

const PREVIEW_RULES: OptionRules<PreviewHostOptions> = { checkpoints: VALUES };

/** Families with published latent-to-RGB factors, with the text encoders of each. */
const FAMILIES = {
  sd15: "l",
  sdxl: "lg",
  "sd21-v": "l",
  "sd21-v-zsnr": "l",
  "hunyuan-dit": "l",
  svd: "l",
  sd3: "lg",
  auraflow: "l",
  flux: "l",
  "flux-schnell": "l",
} as const satisfies Partial<Record<ModelSamplingName, "l" | "lg">>;

type Family = keyof typeof FAMILIES;

/**
 * Makes a host that needs no weights: real noise schedules, the published latent-to-RGB factors as a vae, a hashing clip and
 * an analytic denoiser. Same inputs give the same bits on every machine. Its own checkpoints are named
 * `preview-FAMILY.safetensors`. Fails if `checkpoints` names a family it has no factors for.
 */
export function createPreviewHost(options: PreviewHostOptions = {}): Host {
  checkOptions("createPreviewHost", options, PREVIEW_RULES);
  const { checkpoints = {} } = options;
  const families = new Map<string, Family>();
  for (const family of Object.keys(FAMILIES) as Family[]) families.set(`preview-${family}.safetensors`, family);
  for (const [name, family] of Object.entries(checkpoints)) families.set(name, requireFamily(name, family));
  const names = Object.freeze([...families.keys()]);
  const loaded = new Map<Family, Checkpoint>();
  const host: Host = {
    name: "preview",
    preview: true,
    signature: JSON.stringify(["preview", ...families]),
    checkpoints: () => names,
    async loadCheckpoint(name: string): Promise<Checkpoint> {
      const family = families.get(name);
      if (family === undefined) throw notOneOf("Checkpoint", names, name);
      const checkpoint = loaded.get(family) ?? load(family);
      loaded.set(family, checkpoint);
      return checkpoint;
    },
  };
  return Object.freeze(Object.defineProperties(host, { retainsNoTensors: { value: true }, abilities: { value: [] } }));
}

function load(family: Family): Checkpoint {
  const sampling = modelSampling(family);
  const table = LATENT_RGB.find(({ format }) => format === sampling.latentFormat);
  if (table === undefined) {
    throw new LatentkitError("host.missing", `Preview host: there are no latent-to-RGB factors for ${family}.`);
  }
  return Object.freeze({
    model: previewModel(sampling, colourToLatent(table)),
    clip: previewClip(FAMILIES[family]),
    vae: previewVae(table),
  });
}

function requireFamily(name: string, family: unknown): Family {
  if (typeof family === "string" && Object.hasOwn(FAMILIES, family)) return family as Family;
  throw notOneOf(`Preview checkpoint ${describe(name)}`, Object.keys(FAMILIES), family);
}
