import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { SamplingSpec } from "#src/native/bindings.js";
import { loadNative } from "#src/native/load.js";
import { golden } from "../../helpers/tensor/golden.js";

const native = loadNative();

interface SigmaCase {
  id: string;
  model: string;
  scheduler: string;
  steps: number;
  sampler: string;
  /** Largest difference between PyTorch's own paths of computation. */
  ulp_across_simd?: number;
  len: number;
  offset: number;
  indices?: number[];
  sha256: string;
  error?: string;
}

interface ModelMeta {
  table_len: number;
  table: string;
  table_stride: number;
  timestep_of_sigma: [number, number][];
}

const NONE: Omit<SamplingSpec, "kind"> = {
  linearStart: 0,
  linearEnd: 0,
  zsnr: false,
  sigmaMin: 0,
  sigmaMax: 0,
  shift: 0,
  multiplier: 0,
};
const SD = { ...NONE, kind: "discrete" as const, linearStart: 0.00085, linearEnd: 0.012 };

const SAMPLINGS: Record<string, SamplingSpec> = {
  sd15_eps: SD,
  sd2_vpred_zsnr: { ...SD, zsnr: true },
  edm_playground25: { ...NONE, kind: "edm", sigmaMin: 0.002, sigmaMax: 80 },
  sd3_flow_shift3: { ...NONE, kind: "flow", shift: 3, multiplier: 1000 },
  "flux_shift1.15": { ...NONE, kind: "flux", shift: 1.15 },
  flux_schnell: { ...NONE, kind: "flow", shift: 1, multiplier: 1 },
  cascade_c: { ...NONE, kind: "cascade", shift: 2 },
};

const EXTRA_STEP = new Set(["dpm_2", "dpm_2_ancestral", "uni_pc", "uni_pc_bh2"]);

/** Distance of two positive float32 values, or zeros, in units of the last place. */
function ulps(a: number, b: number): number {
  const bits = new Int32Array(new Float32Array([a, b]).buffer);
  return Math.abs(bits[0]! - bits[1]!);
}

const relative = (a: number, b: number): number => (a === b ? 0 : Math.abs(a - b) / Math.max(Math.abs(b), 1e-30));

/** Is a within the tolerance that the golden README gives for this scheduler and model? */
function within(c: SigmaCase, a: number, b: number): boolean {
  const { scheduler, model } = c;
  if (model === "cascade_c") return relative(a, b) <= (b < 1 ? 4e-4 : 2e-5);
  if (scheduler === "kl_optimal") {
    if (model.startsWith("edm")) return relative(a, b) <= 2e-5;
    return model.endsWith("zsnr") ? relative(a, b) <= 5e-4 : ulps(a, b) <= 1;
  }
  return relative(a, b) <= (model.endsWith("zsnr") ? 1.5e-5 : 3e-6);
}

/** Karras: up to 20 steps. From there on PyTorch takes another path, with an error of its own. */
function bitExact({ scheduler, model, ulp_across_simd, steps }: SigmaCase): boolean {
  if (model === "cascade_c" || scheduler === "kl_optimal") return false;
  return scheduler !== "karras" || ((ulp_across_simd ?? 0) === 0 && steps <= 20);
}

describe("native sigmas against the reference", () => {
  const { meta, cases, raw } = golden<SigmaCase, { models: Record<string, ModelMeta> }>("sigmas");
  const stored = raw("values").data;
  const tables = new Map(Object.entries(SAMPLINGS).map(([model, spec]) => [model, native.samplingTable(spec)]));

  it("has all cases and models", () => {
    assert.equal(cases.length, 1566);
    assert.deepEqual(new Set(Object.keys(SAMPLINGS)), new Set(Object.keys(meta.models)));
  });

  it("builds the tables", () => {
    for (const [model, expected] of Object.entries(meta.models)) {
      const table = tables.get(model)!;
      assert.equal(table.length, expected.table_len, model);
      const values = raw(expected.table).data;
      assert.equal(values.length, Math.ceil(table.length / expected.table_stride), model);
      for (let i = 0; i < values.length; i++) {
        const ours = table[i * expected.table_stride]!;
        if (model === "cascade_c") assert.ok(relative(ours, values[i]!) <= 4e-4, `${model} ${i}`);
        else assert.equal(ours, values[i], `${model} ${i}`);
      }
    }
  });

  it("maps sigmas to timesteps", () => {
    for (const [model, { timestep_of_sigma }] of Object.entries(meta.models)) {
      for (const [sigma, timestep] of timestep_of_sigma) {
        const got = native.samplingTimestep(SAMPLINGS[model]!, sigma);
        assert.ok(relative(got, timestep) <= 3e-6, `${model}: ${got} for ${timestep}`);
      }
    }
  });

  it("computes every schedule", () => {
    for (const c of cases) {
      const extra = EXTRA_STEP.has(c.sampler);
      const sigmas = native.schedule(SAMPLINGS[c.model]!, tables.get(c.model)!, c.scheduler, c.steps, extra, 1);
      if (c.steps === 0) {
        // decided: the single sigma 0, even if the reference fails or counts on
        assert.deepEqual([...sigmas], [0], c.id);
        continue;
      }
      assert.equal(c.error, undefined, c.id);
      const indices = c.indices ?? Array.from({ length: c.len }, (_, i) => i);
      const expected = stored.subarray(c.offset, c.offset + indices.length);
      if (c.scheduler === "kl_optimal" && expected.some(Number.isNaN)) {
        // decided: one step is the largest sigma and 0; the reference divides by 0
        assert.deepEqual([...sigmas], [tables.get(c.model)!.at(-1), 0], c.id);
        continue;
      }
      assert.equal(sigmas.length, c.len, c.id);
      if (bitExact(c)) {
        assert.equal(createHash("sha256").update(new Uint8Array(sigmas.slice().buffer)).digest("hex"), c.sha256, c.id);
      }
      indices.forEach((index, i) => {
        assert.ok(within(c, sigmas[index]!, expected[i]!), `${c.id} [${index}]: ${sigmas[index]} for ${expected[i]}`);
      });
    }
  });
});
