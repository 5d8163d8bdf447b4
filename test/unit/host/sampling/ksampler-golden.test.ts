import assert from "node:assert/strict";
import {
  type Conditioning,
  invokeNode,
  type Latent,
  modelSampling,
  type Sampler,
  type Scheduler,
  Tensor,
} from "latentkit";
import type { Guider } from "#src/host/sampling/guiders.js";
import { denoiseMask, intoModel, withChannels } from "#src/host/sampling/latent-space.js";
import { initialNoise, reseededNoise } from "#src/host/sampling/noise.js";
import { sample, scheduledSigmas } from "#src/host/sampling/sample.js";
import { SOLVERS } from "#src/host/sampling/solvers/index.js";
import { analyticEntry, analyticModel, type ModelCall } from "../../../helpers/sampling/analytic-model.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";
import { golden } from "../../../helpers/tensor/golden.js";

interface Entry {
  c: number | number[];
  tokens?: number;
  mask?: string;
  [option: string]: unknown;
}

interface Stage {
  steps: number;
  cfg: number;
  sampler_name: Sampler;
  scheduler: Scheduler;
  denoise?: number;
  seed?: string;
  noise_seed?: string;
  add_noise?: "enable" | "disable" | boolean;
  start_at_step?: number;
  end_at_step?: number;
  return_with_leftover_noise?: "enable" | "disable";
}

interface Case extends Stage {
  id: string;
  node: "KSampler" | "KSamplerAdvanced" | "SamplerCustom" | "SamplerCustomAdvanced" | "AddNoise" | "two_stage";
  model: "sd15" | "sd3" | "flux";
  latent: Record<string, unknown>;
  positive?: Entry[];
  negative?: Entry[] | "EMPTY";
  noise_node?: "RandomNoise" | "DisableNoise";
  guider?: { kind: string; cfg?: number; cfg_conds?: number; cfg_cond2_negative?: number; style?: string };
  first?: Stage;
  second?: Stage;
  sigmas_in?: string;
  noise?: string;
  sigmas_used?: string;
  x0?: string;
  latent_in?: string;
  mask_used?: string;
  inpaint_noise?: string;
  out: string;
  first_out?: string;
  denoised_output?: string;
  denoised_is_output?: boolean;
  out_keys: string[];
  returns_input_samples_object: boolean;
  model_calls: number;
  call_sigmas: number[];
  call_batches?: [rows: number, sides: number[]][];
  spread_f32: number | null;
  scale: number;
  error?: string;
}

const { cases, tensor, has, raw } = golden<Case>("ksampler");
const SAMPLINGS = { sd15: modelSampling("sd15"), sd3: modelSampling("sd3"), flux: modelSampling("flux") };

/** A case with its model, which writes down its calls, and its inputs. */
class Run {
  readonly calls: ModelCall[];
  readonly model;
  readonly positive: Conditioning;
  readonly negative: Conditioning;
  readonly middle: Conditioning = [analyticEntry(0.1)];
  readonly latent: Latent;
  readonly sampling;

  constructor(readonly one: Case) {
    this.sampling = SAMPLINGS[one.model];
    const { model, calls } = analyticModel(this.sampling);
    this.model = model;
    this.calls = calls;
    this.positive = conditioning(one.positive ?? [{ c: 0.5 }]);
    this.negative = one.negative === "EMPTY" ? [] : conditioning(one.negative ?? [{ c: -0.25 }]);
    this.latent = Object.fromEntries(
      Object.entries(one.latent).map(([key, value]) => [key, readable(value) ? tensor(value) : value]),
    ) as Latent;
  }

  get sigmas(): Tensor {
    const { data } = raw(this.one.sigmas_in!);
    return Tensor.from(data as Float32Array, [data.length]);
  }

  async stage(stage: Stage, latent: Latent): Promise<Latent> {
    const { model, positive, negative } = this;
    const { steps, cfg, sampler_name, scheduler, denoise, seed } = stage;
    const common = { model, positive, negative, steps, cfg, sampler_name, scheduler, latent_image: latent };
    if (seed !== undefined) return only(await invokeNode("KSampler", { ...common, seed, denoise }));
    const { add_noise, noise_seed, start_at_step, end_at_step, return_with_leftover_noise } = stage;
    const window = { add_noise, noise_seed, start_at_step, end_at_step, return_with_leftover_noise };
    return only(await invokeNode("KSamplerAdvanced", { ...common, ...window }));
  }

  async outputs(): Promise<Latent[]> {
    const { one, latent, model, positive, negative } = this;
    if (one.node === "two_stage") {
      const first = await this.stage(one.first!, latent);
      return [await this.stage(one.second!, first), first];
    }
    if (one.node === "KSampler" || one.node === "KSamplerAdvanced") return [await this.stage(one, latent)];
    const { sigmas } = this;
    const noise = await this.noise();
    if (one.node === "AddNoise")
      return [only(await invokeNode("AddNoise", { model, noise, sigmas, latent_image: latent }))];
    const [sampler] = (await invokeNode("KSamplerSelect", { sampler_name: one.sampler_name })).result;
    if (one.node === "SamplerCustomAdvanced") {
      const guider = await this.guider();
      return pair(await invokeNode("SamplerCustomAdvanced", { noise, guider, sampler, sigmas, latent_image: latent }));
    }
    const { add_noise, noise_seed, cfg } = one;
    const inputs = { model, add_noise, noise_seed, cfg, positive, negative, sampler, sigmas, latent_image: latent };
    return pair(await invokeNode("SamplerCustom", inputs));
  }

  async noise(): Promise<unknown> {
    const { noise_node = "RandomNoise", noise_seed } = this.one;
    const inputs = noise_node === "RandomNoise" ? { noise_seed } : {};
    return (await invokeNode(noise_node as string, inputs)).result[0];
  }

  async guider(): Promise<Guider> {
    const { model, positive, negative, middle } = this;
    const { kind, ...settings } = this.one.guider!;
    const sides: Record<string, Record<string, unknown>> = {
      BasicGuider: { conditioning: positive },
      CFGGuider: { positive, negative },
      DualCFGGuider: { cond1: positive, cond2: middle, negative },
    };
    return (await invokeNode(kind, { model, ...sides[kind], ...settings })).result[0] as Guider;
  }

  /** Number of an entry's side, as the reference numbers the sides of a guider. */
  sideOf([tokens]: Conditioning[number]): number {
    const isDual = this.one.guider?.kind === "DualCFGGuider";
    const sides = isDual ? [this.negative, this.middle, this.positive] : [this.positive, this.negative];
    return sides.findIndex((side) => side.some(([own]) => own === tokens));
  }
}

const only = ({ result }: { result: readonly unknown[] }): Latent => result[0] as Latent;
const pair = ({ result }: { result: readonly unknown[] }): Latent[] => result as Latent[];
const readable = (value: unknown): value is string => typeof value === "string" && has(value);

const conditioning = (entries: readonly Entry[]): Conditioning =>
  entries.map(({ c, tokens, mask, ...options }) =>
    analyticEntry(c, mask === undefined ? options : { ...options, mask: tensor(mask) }, tokens),
  );

describe("golden ksampler", () => {
  // unknown names are refused here, by decision
  const refused = new Set(["bad_sampler", "bad_scheduler", "bad_both"]);

  for (const one of cases) {
    const { sampler_name } = one.first ?? one;
    it(one.id, async () => {
      const run = new Run(one);
      if (one.error !== undefined || refused.has(one.id)) {
        await assert.rejects(run.outputs(), { name: "LatentkitError" });
        assert.equal(run.calls.length, 0);
        return;
      }
      const outputs = await run.outputs();
      checkParts(run);
      checkCalls(run);
      if (SOLVERS[sampler_name]!.noise === "stream" && run.calls.length > 0) await checkSameSeed(run, outputs[0]!);
      else checkOutputs(run, outputs);
    });
  }
});

/** The way to the sampler: noise, sigmas, latent, mask, and x of the first call. */
function checkParts({ one, latent, sampling, calls }: Run): void {
  const stage = one.first ?? one;
  const samples = withChannels(latent.samples, sampling);
  const seed = BigInt(stage.seed ?? stage.noise_seed ?? 0);
  const layout = { shape: samples.shape, batchIndex: latent.batch_index };
  if (one.noise !== undefined)
    assertSameBits(initialNoise({ seed, enabled: true }, layout), tensor(one.noise), "noise");
  // of two stages the second one's latent and x0 are stored
  const start = one.first_out === undefined ? samples : tensor(one.first_out);
  if (one.latent_in !== undefined) close(intoModel(start, sampling), one.latent_in, 2e-6, "latent_in");
  if (one.inpaint_noise !== undefined && stage.sampler_name === "ddim")
    assertSameBits(reseededNoise(seed, samples.shape).noise, tensor(one.inpaint_noise), "inpaint_noise");
  if (one.sigmas_used !== undefined && one.sigmas_in === undefined) checkSigmas(one, stage);
  if (one.mask_used !== undefined) checkMask(one, latent, samples.shape);
  else if (one.x0 !== undefined) {
    const call = calls[one.first === undefined ? 0 : one.first.end_at_step!];
    const x0 = tensor(one.x0);
    // areas are evaluated first, on parts of x
    if (call === undefined || x0.size * call.cond.length !== call.x.size) return;
    const first = Tensor.from(call.x.data.slice(0, x0.size), x0.shape);
    const tolerance = one.first_out === undefined ? 2e-6 : 2e-5;
    close(first, one.x0, tolerance * Math.max(...x0.data.map(Math.abs)), "x0");
  }
}

/** Two stages have the sigmas of the second one. */
function checkSigmas(one: Case, first: Stage): void {
  const { sampler_name: sampler, scheduler, steps, denoise, ...stage } = one.second ?? first;
  const window = {
    start: stage.start_at_step!,
    end: stage.end_at_step!,
    leavesNoise: stage.return_with_leftover_noise === "enable",
  };
  const model = SAMPLINGS[one.model];
  const options = { model, sampler, scheduler, steps, denoise };
  const sigmas = scheduledSigmas(options, stage.start_at_step === undefined ? undefined : window);
  const expected = tensor(one.sigmas_used!);
  assertClose(Tensor.from(sigmas, [sigmas.length]), expected, (x) => 3e-6 * x, "sigmas_used");
}

function checkMask(one: Case, latent: Latent, shape: readonly number[]): void {
  const [batch, channels, height, width] = shape as [number, number, number, number];
  const mask = denoiseMask(latent.noise_mask, shape)!;
  const repeated = Tensor.zeros(shape);
  const plane = height * width;
  for (let i = 0; i < batch * channels; i++) {
    const item = Math.floor(i / channels) % mask.shape[0]!;
    repeated.data.set(mask.data.subarray(item * plane, (item + 1) * plane), i * plane);
  }
  close(repeated, one.mask_used!, 2e-6, "mask_used");
}

function checkCalls(run: Run): void {
  const { calls, one } = run;
  const near = one.sampler_name === "dpm_adaptive" ? 1e-3 : 2e-5;
  assert.equal(calls.length, one.model_calls, "model calls");
  for (const [i, { sigma }] of calls.entries()) {
    const expected = one.call_sigmas[i]!;
    assert.ok(Math.abs(sigma - expected) <= near * expected, `sigma of call ${i}: ${sigma}, expected ${expected}`);
  }
  if (one.call_batches === undefined) return;
  const batches = calls.map(({ x, cond }) => [x.shape[0], cond.map((entry) => run.sideOf(entry))]);
  assert.deepEqual(batches, one.call_batches);
}

function checkOutputs({ one, latent }: Run, outputs: readonly Latent[]): void {
  const [out, second] = outputs as [Latent, Latent?];
  assert.deepEqual(Object.keys(out).sort(), [...one.out_keys].sort());
  assert.equal(out.samples === latent.samples, one.returns_input_samples_object);
  for (const [key, value] of Object.entries(latent)) if (key !== "samples") assert.equal(out[key], value, key);
  const tolerance = toleranceOf(one);
  close(out.samples, one.out, tolerance, "out");
  if (one.first_out !== undefined) close(second!.samples, one.first_out, tolerance, "first_out");
  if (one.denoised_output !== undefined) close(second!.samples, one.denoised_output, tolerance, "denoised_output");
  if (one.denoised_is_output !== undefined) assert.equal(second === out, one.denoised_is_output);
}

function toleranceOf({ sampler_name, scale, spread_f32 }: Case): number {
  const relative = { dpm_adaptive: 1e-3, uni_pc: 2e-4 }[sampler_name as string] ?? 1e-5;
  return relative * Math.max(1, scale) + 8 * (spread_f32 ?? 0);
}

/**
 * Decided: ancestral noise has the seed plus 1. With the option of the older noise the values are the reference's; without
 * it they are those of the next seed's noise.
 */
async function checkSameSeed(run: Run, ours: Latent): Promise<void> {
  const { one, model, positive, negative, latent } = run;
  const sigmas = tensor(one.sigmas_used!).data;
  const seed = BigInt(one.seed ?? one.noise_seed!);
  const enabled = one.add_noise !== "disable" && one.add_noise !== false;
  const sampled = (ancestral_seed: string) =>
    sample({
      guider: { kind: "cfg", model, positive, negative, cfg: one.cfg },
      sampler: { sampler: one.sampler_name, options: { ancestral_seed } },
      sigmas,
      noise: { seed, enabled },
      latent,
    });
  const same = await sampled("same");
  checkOutputs(run, [same.latent, same.denoised]);
  const next = await sampled("next");
  assertClose(ours.samples, next.latent.samples, () => toleranceOf(one), "seed + 1");
  // the noise of these has the factor 0, and that of the last step is not added
  if (/^dpm_(fast|adaptive)$/.test(one.sampler_name) || sigmas.length <= 2) return;
  assert.notDeepEqual(ours.samples.data, same.latent.samples.data);
}

const close = (actual: unknown, expected: string, tolerance: number, what: string): void =>
  assertClose(actual, tensor(expected), () => tolerance, what);
