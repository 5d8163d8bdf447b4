import assert from "node:assert/strict";
import {
  LatentkitError,
  type ModelSamplingName,
  modelSampling,
  SAMPLERS,
  type Sampler,
  SCHEDULERS,
  type Scheduler,
  sigmas,
} from "latentkit";
import { golden, goldenJson } from "../../../helpers/tensor/golden.js";

interface Case {
  id: string;
  model: string;
  scheduler: Scheduler;
  sampler: Sampler;
  steps: number;
  error?: string;
  len: number;
  offset: number;
  indices?: number[];
}

interface ModelMeta {
  table: string;
  table_len: number;
  table_stride: number;
  timestep_of_sigma: [number, number][];
}

const NAMES: Record<string, ModelSamplingName> = {
  sd15_eps: "sd15",
  sd2_vpred_zsnr: "sd21-v-zsnr",
  edm_playground25: "playground25",
  sd3_flow_shift3: "sd3",
  "flux_shift1.15": "flux",
  flux_schnell: "flux-schnell",
  cascade_c: "cascade-c",
};

/** Samplers that ComfyUI does not have. */
const OWN_SAMPLERS: readonly string[] = [];

/** Schedulers that are not bit for bit: each power or tangent of theirs is rounded otherwise in the reference. */
const ROUNDED = new Set(["karras", "kl_optimal"]);

/** Distance in representable float32 values. */
function ulps(a: number, b: number): number {
  const order = (x: number): number => {
    const bits = new Int32Array(Float32Array.of(x).buffer)[0]!;
    return bits < 0 ? -(bits & 0x7fffffff) : bits;
  };
  return Math.abs(order(a) - order(b));
}

/** Whether a value is within the tolerance of the golden set's README for its scheduler and model. */
function close(model: ModelSamplingName, scheduler: Scheduler, got: number, expected: number): boolean {
  const relative = (tolerance: number): boolean => Math.abs(got - expected) <= tolerance * Math.abs(expected);
  if (model === "cascade-c") return relative(expected < 1 ? 4e-4 : 2e-5);
  if (!ROUNDED.has(scheduler)) return got === expected;
  if (scheduler === "kl_optimal") {
    if (model === "playground25") return relative(2e-5);
    return model === "sd21-v-zsnr" ? relative(5e-4) : ulps(got, expected) <= 1;
  }
  return relative(model === "sd21-v-zsnr" ? 1.5e-5 : 3e-6);
}

describe("sigmas", () => {
  const { cases, meta, tensor } = golden<Case, { models: Record<string, ModelMeta> } & Record<string, unknown>>(
    "sigmas",
  );
  const values = tensor("values").data;

  it("agrees with the reference in 1,566 of 1,566 golden cases", () => {
    assert.equal(cases.length, 1566);
    const wrong: string[] = [];
    for (const { id, model: golden, scheduler, sampler, steps, error, len, offset, indices } of cases) {
      const model = NAMES[golden]!;
      const got = sigmas({ model, scheduler, sampler, steps });
      if (error !== undefined) {
        // the reference divides by zero; ours gives the single sigma 0
        assert.deepEqual([...got], [0], id);
        continue;
      }
      if (steps === 0) {
        assert.deepEqual([...got], [0], id);
        continue;
      }
      if (Number.isNaN(values[offset])) {
        // kl_optimal with one step: the reference gives NaN, ours the largest sigma
        assert.deepEqual([...got], [modelSampling(model).sigmaMax, 0], id);
        continue;
      }
      const places = indices ?? Array.from({ length: len }, (_, i) => i);
      const good =
        got.length === len && places.every((place, i) => close(model, scheduler, got[place]!, values[offset + i]!));
      if (!good) wrong.push(id);
    }
    assert.deepEqual(wrong, []);
  });

  it("has the reference's tables and maps", () => {
    for (const [name, { table, table_len, table_stride, timestep_of_sigma }] of Object.entries(meta.models)) {
      const sampling = modelSampling(NAMES[name]!);
      assert.equal(sampling.sigmas.length, table_len, name);
      for (const [i, expected] of tensor(table).data.entries()) {
        const got = sampling.sigmas[i * table_stride]!;
        const good = name === "cascade_c" ? Math.abs(got - expected) <= 4e-4 * expected : got === expected;
        assert.ok(good, `${name}[${i * table_stride}]: ${got}, not ${expected}`);
      }
      for (const [sigma, timestep] of timestep_of_sigma) {
        const got = sampling.timestep(sigma);
        assert.ok(
          Math.abs(got - timestep) <= 1e-5 * Math.max(1, Math.abs(timestep)),
          `${name}: ${sigma} is ${got}, not ${timestep}`,
        );
      }
      assert.equal(sampling.sigmaMin, sampling.sigmas[0]);
      assert.equal(sampling.sigmaMax, sampling.sigmas.at(-1));
    }
  });

  it("lists ComfyUI's names in its order", () => {
    const names = SAMPLERS.filter((name) => !OWN_SAMPLERS.includes(name));
    assert.deepEqual(names, meta.SAMPLER_NAMES_newest);
    assert.deepEqual(SCHEDULERS, meta.SCHEDULER_NAMES);
  });

  it("gives the single sigma 0 for no steps, [sigmaMax, 0] for kl_optimal with one", () => {
    for (const scheduler of SCHEDULERS) assert.deepEqual([...sigmas({ scheduler, steps: 0 })], [0], scheduler);
    const { sigmaMax } = modelSampling("sd15");
    assert.deepEqual([...sigmas({ scheduler: "kl_optimal", steps: 1 })], [sigmaMax, 0]);
  });

  it("keeps the last steps + 1 sigmas with denoise, none at 0", () => {
    const all = sigmas({ scheduler: "karras", steps: 40 });
    assert.deepEqual([...sigmas({ scheduler: "karras", steps: 20, denoise: 0.5 })], [...all.slice(-21)]);
    assert.deepEqual(
      [...sigmas({ scheduler: "karras", steps: 20, denoise: 0.99995 })],
      [...sigmas({ scheduler: "karras", steps: 20 })],
    );
    assert.equal(sigmas({ scheduler: "karras", steps: 20, denoise: 0 }).length, 0);
  });

  it("schedules a foreign sampling by its own table and maps", () => {
    // their tables have 1,000 and 10,000 sigmas
    for (const known of [modelSampling("sd3"), modelSampling("flux")]) {
      const { name, prediction, sigmas: table, sigmaMin, sigmaMax, latentFormat } = known;
      const foreign = {
        name,
        prediction,
        sigmas: table,
        sigmaMin,
        sigmaMax,
        latentFormat,
        timestep: (sigma: number) => known.timestep(sigma),
        sigma: (timestep: number) => known.sigma(timestep),
      };
      for (const scheduler of SCHEDULERS) {
        for (const sampler of ["euler", "dpm_2"] as const) {
          for (const [steps, denoise] of [
            [0, 1],
            [1, 1],
            [7, 1],
            [12, 0.5],
          ] as const) {
            const options = { sampler, scheduler, steps, denoise };
            assert.deepEqual(
              [...sigmas({ model: foreign, ...options })],
              [...sigmas({ model: known, ...options })],
              `${name} ${scheduler} ${sampler} ${steps}`,
            );
          }
        }
      }
      assert.deepEqual(
        [...sigmas({ model: { ...known }, scheduler: "normal", steps: 9 })],
        [...sigmas({ model: known, scheduler: "normal", steps: 9 })],
      );
    }
  });

  const refuses = (call: () => unknown, pattern: RegExp): void => {
    assert.throws(call, (error: unknown) => error instanceof LatentkitError && pattern.test(error.message));
  };

  it("refuses unknown names with the list and a suggestion", () => {
    refuses(
      () => sigmas({ scheduler: "karas" as Scheduler, steps: 2 }),
      /scheduler: expected one of simple, .* received "karas". Did you mean karras\?/,
    );
    refuses(() => sigmas({ scheduler: "karras", sampler: "eular" as Sampler, steps: 2 }), /Did you mean euler\?/);
    refuses(() => sigmas({ scheduler: "karras", model: "sd16" as "sd15", steps: 2 }), /Did you mean sd15\?/);
    refuses(
      () => sigmas({ scheduler: "karras", model: {} as ReturnType<typeof modelSampling>, steps: 2 }),
      /model: expected a model sampling/,
    );
  });

  it("refuses steps and denoise out of range", () => {
    for (const steps of [-1, 1.5, 10_001, Number.NaN, "3"])
      refuses(() => sigmas({ scheduler: "simple", steps: steps as number }), /^steps: expected a whole number/);
    refuses(() => sigmas({ scheduler: "simple", steps: 10, denoise: 1.5 }), /^denoise: .* received 1.5/);
    refuses(() => sigmas({ scheduler: "simple", steps: 10, denoise: Number.NaN }), /^denoise/);
    refuses(() => sigmas({ scheduler: "simple", steps: 10_000, denoise: 1e-9 }), /^denoise: .* at most 1000000/);
  });
});

describe("modelSampling", () => {
  it("follows overrides", () => {
    assert.ok(ulps(modelSampling("svd", { sigmaMax: 500 }).sigmaMax, 500) <= 8);
    assert.notEqual(modelSampling("sd3", { shift: 1 }).sigmaMin, modelSampling("sd3").sigmaMin);
    assert.deepEqual(modelSampling("sd21-v", { zsnr: true }).sigmas, modelSampling("sd21-v-zsnr").sigmas);
  });

  it("has the published latent formats", () => {
    const { latent_formats } = goldenJson<{
      latent_formats: Record<string, { scale_factor: number; shift_factor: number | null; latent_channels: number }>;
    }>("latent_formats");
    for (const name of ["sd15", "sdxl", "playground25", "sd3", "flux", "cascade-b", "cascade-c"] as const) {
      const { latentFormat } = modelSampling(name);
      const expected = latent_formats[latentFormat.name]!;
      assert.equal(latentFormat.scaleFactor, expected.scale_factor, name);
      assert.equal(latentFormat.shiftFactor, expected.shift_factor ?? 0, name);
      assert.equal(latentFormat.channels, expected.latent_channels, name);
    }
  });

  it("refuses overrides a family does not have, and values out of range", () => {
    assert.throws(
      () => modelSampling("sd15", { shift: 2 }),
      /sd15 has no parameter shift: expected one of linearStart, linearEnd, zsnr/,
    );
    assert.throws(() => modelSampling("sd3", { shift: 0 }), /sd3, shift: expected a finite number above 0, received 0/);
    assert.throws(
      () => modelSampling("svd", { sigmaMin: 900 }),
      /expected (sigmaMin below sigmaMax|linearStart below linearEnd), received/,
    );
    assert.throws(() => modelSampling("sd15", { zsnr: 1 as unknown as boolean }), /zsnr: expected a boolean/);
    for (const [name, overrides] of [
      ["sd3", { shift: 1e300 }],
      ["sd3", { shift: 1e-300 }],
      ["auraflow", { multiplier: 1e300 }],
      ["svd", { sigmaMax: 1e300 }],
      ["sd15", { linearStart: 1e-300, linearEnd: 0.999999999 }],
    ] as const)
      assert.throws(() => modelSampling(name, overrides), /: expected numbers that give finite sigmas, received /);
  });
});
