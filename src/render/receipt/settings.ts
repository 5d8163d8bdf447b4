import { packageVersion } from "../../base/package.js";
import { inputsOf, isLink, type Prompt } from "../../graph/parse.js";
import { isPlainObject } from "../../io/json/lossless.js";
import { printJson } from "../../io/json/print.js";

/** Settings that a picture was sampled with, as the graph has them; numbers with their digits. */
export interface Settings {
  /** "" if the sampler has no text. */
  readonly positive: string;
  readonly negative: string;
  readonly seed?: string;
  readonly steps?: string;
  readonly sampler?: string;
  readonly scheduler?: string;
  readonly cfg?: string;
  readonly denoise?: string;
  readonly model?: ModelFile;
}

/** The model of a sampler: its kind of folder, and the name of its file. */
export interface ModelFile {
  readonly kind: "checkpoints" | "diffusion_models";
  readonly name: string;
}

type Side = "positive" | "negative";

/** Prompt by which custom sampling gets its settings from other nodes. */
const SETTING_LINKS = ["noise", "guider", "sampler", "sigmas"] as const;
const TEXT_INPUTS = ["text", "text_g", "text_l", "t5xxl", "clip_l", "prompt"] as const;
/** Prompt of nodes that pass a literal value on. */
const VALUE_INPUTS = ["value", "text", "string", "anything", "seed", "noise_seed"] as const;
/** Nodes that pass one value on, one behind the other. */
const MAX_PASSES = 16;
const MODEL_INPUTS = ["ckpt_name", "unet_name"] as const;
/** Far deeper than any graph. */
const MAX_NODES = 10_000;

/** Settings of the first sampler above a node, such as the node that saves a picture; undefined without a sampler. */
function settingsOf(prompt: Prompt, nodeId: string): Settings | undefined {
  const graph = new Upstream(prompt);
  const sampler = graph.first(nodeId, ({ latent_image, positive, guider }) => {
    return isLink(latent_image) && (isLink(positive) || isLink(guider));
  });
  if (sampler === undefined) return undefined;
  const guider = graph.inputsAt(sampler.guider) ?? {};
  const setting = (...names: readonly string[]) => graph.setting(sampler, names);
  const model = graph.modelOf(sampler.model ?? guider.model);
  return {
    positive: graph.textsOf(sampler.positive ?? guider.positive ?? guider.cond1 ?? guider.conditioning, "positive"),
    negative: graph.textsOf(sampler.negative ?? guider.negative, "negative"),
    seed: setting("seed", "noise_seed"),
    steps: setting("steps"),
    sampler: setting("sampler_name"),
    scheduler: setting("scheduler"),
    cfg: setting("cfg"),
    denoise: setting("denoise"),
    model: model && { kind: model[0] === "ckpt_name" ? "checkpoints" : "diffusion_models", name: model[1] },
  };
}

/** A graph as seen from a node against its links. */
class Upstream {
  readonly #prompt: Prompt;

  constructor(prompt: Prompt) {
    this.#prompt = prompt;
  }

  /** Prompt of the node that a link comes from. */
  inputsAt(link: unknown): Prompt | undefined {
    return isLink(link) ? inputsOf(this.#prompt, link[0]) : undefined;
  }

  /** Prompt of the nearest node that matches. */
  first(nodeId: string, matches: (inputs: Prompt) => boolean): Prompt | undefined {
    const seen = new Set([nodeId]);
    for (const id of seen) {
      const inputs = inputsOf(this.#prompt, id);
      if (inputs === undefined) continue;
      if (matches(inputs)) return inputs;
      for (const value of Object.values(inputs)) if (isLink(value) && seen.size < MAX_NODES) seen.add(value[0]);
    }
    return undefined;
  }

  /** The first of these inputs of a sampler, or of the nodes that it gets its settings from, as text. */
  setting(sampler: Prompt, names: readonly string[]): string | undefined {
    const linked = SETTING_LINKS.flatMap((link): Prompt[] => {
      const inputs = this.inputsAt(sampler[link]);
      return inputs === undefined ? [] : [inputs];
    });
    for (const inputs of [sampler, ...linked]) {
      for (const name of names) {
        const value = this.#literal(inputs[name]);
        if (value !== undefined) return value;
      }
    }
    return undefined;
  }

  /** A value as text, also one that nodes only pass on. */
  #literal(value: unknown): string | undefined {
    let at = value;
    for (let passes = 0; isLink(at) && passes < MAX_PASSES; passes++) {
      const inputs = this.inputsAt(at) ?? {};
      const passed = VALUE_INPUTS.map((name) => inputs[name]).filter((inner) => inner !== undefined);
      at = passed.find((inner) => !isLink(inner)) ?? passed[0];
    }
    return isLink(at) || at === undefined || at === null ? undefined : asText(at);
  }

  /** A side of a pipe, as the node that put it there got it: a text or a link. */
  #sideOfPipe(pipe: unknown, side: Side): unknown {
    const seen = new Set<string>();
    for (let link = pipe; isLink(link) && !seen.has(link[0]); link = this.inputsAt(link)?.pipe) {
      seen.add(link[0]);
      const own = this.inputsAt(link)?.[side];
      if (own !== undefined) return own;
    }
    return undefined;
  }

  /** Texts that a side of conditioning is encoded from, in the order of the inputs, each once. */
  textsOf(conditioning: unknown, side: Side): string {
    const texts = new Set<string>();
    const seen = new Set<string>();
    const pending: unknown[] = [conditioning];
    for (let link = pending.shift(); link !== undefined && seen.size < MAX_NODES; link = pending.shift()) {
      if (!isLink(link) || seen.has(`${link[0]} ${link[1]}`)) continue;
      seen.add(`${link[0]} ${link[1]}`);
      const node = this.#prompt[link[0]];
      const inputs = inputsOf(this.#prompt, link[0]);
      if (inputs === undefined || (isPlainObject(node) && node.class_type === "ConditioningZeroOut")) continue;
      const ofPipe = this.#sideOfPipe(inputs.pipe, side);
      const own = [...TEXT_INPUTS.map((name) => inputs[name]), ofPipe].flatMap((text) => this.#literal(text) ?? []);
      for (const text of own) if (text.trim() !== "") texts.add(text.trim());
      if (own.length > 0) continue;
      // a node with both sides returns them in this order
      const sides = [inputs.positive, inputs.negative];
      const isBoth = sides.every(isLink);
      if (isLink(ofPipe)) pending.unshift(ofPipe);
      else pending.unshift(...(isBoth ? [sides[Number(link[1]) === 1 ? 1 : 0]] : Object.values(inputs).filter(isLink)));
    }
    return [...texts].join(", ");
  }

  /** The input that names a model's file, and the name. */
  modelOf(link: unknown): readonly [input: string, name: string] | undefined {
    if (!isLink(link)) return undefined;
    const inputs = this.first(link[0], (own) => MODEL_INPUTS.some((name) => typeof own[name] === "string"));
    const input = MODEL_INPUTS.find((name) => typeof inputs?.[name] === "string");
    return input === undefined ? undefined : [input, String(inputs?.[input])];
  }
}

/** A literal of a graph, numbers with the digits they have there. */
const asText = (value: unknown): string => (typeof value === "string" ? value : printJson(value));

/**
 * Settings of a picture by the graph in it: of the node that saved it if that is known, else of the last one that saves
 * pictures. Undefined if the graph samples nothing.
 */
export function pictureSettings(graph: unknown, node: string | undefined): Settings | undefined {
  if (!isPlainObject(graph)) return undefined;
  const isSaver = (id: string) => Array.isArray(inputsOf(graph, id)?.images);
  const savers = node === undefined ? Object.keys(graph).filter(isSaver).reverse() : [node];
  for (const id of savers) {
    const settings = settingsOf(graph, id);
    if (settings !== undefined) return settings;
  }
  return undefined;
}

// Off by default: the texts of most pictures must not depend on how another program words its settings.
/** Names of samplers and schedulers as A1111 spells them; others stay as they are. */
const SAMPLERS: Readonly<Record<string, string>> = {
  euler: "Euler",
  euler_ancestral: "Euler a",
  heun: "Heun",
  dpm_2: "DPM2",
  dpm_2_ancestral: "DPM2 a",
  lms: "LMS",
  dpm_fast: "DPM fast",
  dpm_adaptive: "DPM adaptive",
  dpmpp_2s_ancestral: "DPM++ 2S a",
  dpmpp_sde: "DPM++ SDE",
  dpmpp_sde_gpu: "DPM++ SDE",
  dpmpp_2m: "DPM++ 2M",
  dpmpp_2m_sde: "DPM++ 2M SDE",
  dpmpp_2m_sde_gpu: "DPM++ 2M SDE",
  dpmpp_3m_sde: "DPM++ 3M SDE",
  dpmpp_3m_sde_gpu: "DPM++ 3M SDE",
  ddim: "DDIM",
  uni_pc: "UniPC",
  lcm: "LCM",
};
const SCHEDULERS: Readonly<Record<string, string>> = {
  normal: "Normal",
  karras: "Karras",
  exponential: "Exponential",
  sgm_uniform: "SGM Uniform",
  simple: "Simple",
  ddim_uniform: "DDIM",
  beta: "Beta",
  kl_optimal: "KL Optimal",
};

/** Hashes of model files by kind and name, as receipts have them. */
type Models = Readonly<Record<string, string>>;

/**
 * The settings of a picture in the lines that A1111 writes and prompt readers know: of the first sampler above the node
 * that saves it. Undefined without a sampler.
 */
export function infotextOf(
  prompt: Prompt,
  nodeId: string,
  { width, height }: { readonly width: number; readonly height: number },
  models: Models = {},
): string | undefined {
  const settings = settingsOf(prompt, nodeId);
  if (settings === undefined) return undefined;
  const { positive, negative, steps, sampler, scheduler, cfg, seed, denoise, model } = settings;
  const hash = model && models[`${model.kind}/${model.name}`];
  const fields: readonly (readonly [name: string, value: string | undefined])[] = [
    ["Steps", steps],
    ["Sampler", renamed(SAMPLERS, sampler)],
    ["Schedule type", renamed(SCHEDULERS, scheduler)],
    ["CFG scale", cfg],
    ["Seed", seed],
    ["Size", `${width}x${height}`],
    ["Model hash", hash?.replace("sha256:", "").slice(0, 10)],
    ["Model", model?.name.replace(/^.*[\\/]/s, "").replace(/\.[^.]{1,16}$/, "")],
    ["Denoising strength", denoise === undefined || Number(denoise) === 1 ? undefined : denoise],
    ["Version", `latentkit ${packageVersion()}`],
  ];
  const line = fields.flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${quoted(value)}`]));
  const lines = [positive, ...(negative === "" ? [] : [`Negative prompt: ${negative}`]), line.join(", ")];
  return lines.join("\n");
}

const renamed = (names: Readonly<Record<string, string>>, name: string | undefined): string | undefined =>
  name !== undefined && Object.hasOwn(names, name) ? names[name] : name;

/** A value as A1111 writes it: as JSON if it holds a separator of fields. */
const quoted = (value: string): string => (/[,:\n]/.test(value) ? JSON.stringify(value) : value);
