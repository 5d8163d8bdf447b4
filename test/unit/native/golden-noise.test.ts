import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { loadNative } from "#src/native/load.js";
import { golden } from "../../helpers/tensor/golden.js";

const native = loadNative();

const sha256 = (values: Float32Array | Uint32Array): string =>
  createHash("sha256")
    .update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
    .digest("hex");

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function worst(got: ArrayLike<number>, expected: ArrayLike<number>): number {
  assert.equal(got.length, expected.length);
  let largest = 0;
  for (let i = 0; i < got.length; i++) {
    const distance = Math.abs(got[i]! - expected[i]!);
    largest = distance > largest || Number.isNaN(distance) ? distance : largest;
  }
  return largest;
}

/** Runs the body once for each instruction set of this machine, then returns to the one in use. */
function onEveryIsa(body: () => void): void {
  const before = native.isa();
  try {
    for (const name of native.isas()) {
      native.setIsa(name);
      body();
    }
  } finally {
    native.setIsa(before);
  }
}

class CpuStream {
  readonly #state = new Uint8Array(native.mtStateBytes);

  constructor(seed: bigint) {
    native.mtSeed(this.#state, seed);
  }

  randn(n: number): Float32Array {
    const out = new Float32Array(n);
    native.mtRandn(this.#state, out);
    return out;
  }
}

interface CpuCase {
  id: string;
  kind: "randn" | "sequence" | "prepare_noise";
  seed: string;
  shape?: number[];
  calls?: number[];
  latent_shape?: number[];
  noise_inds?: number[];
  sha256_avx2: string;
}

function cpuValues(c: CpuCase): Float32Array {
  const stream = new CpuStream(BigInt(c.seed));
  if (c.kind === "randn") return stream.randn(product(c.shape!));
  if (c.kind === "sequence") return joined(c.calls!.map((n) => stream.randn(n)));
  const each = product(c.latent_shape!.slice(1));
  const drawn = Array.from({ length: Math.max(...c.noise_inds!) + 1 }, () => stream.randn(each));
  return joined(c.noise_inds!.map((i) => drawn[i]!));
}

interface CudaCase {
  id: string;
  kind: "randn" | "sequence" | "profile" | "published_real_gpu_values";
  seed: string;
  profile?: string;
  shape?: number[];
  calls?: number[];
  indices?: number[];
  data?: string;
  u32?: string;
  u32_sha256?: string;
  threads_cap?: number | null;
  philox_offset_after?: number;
  next_call_20?: string;
  expected?: Record<string, number[]>;
}

describe("native noise against the reference", () => {
  const cpu = golden<CpuCase>("rng_cpu");
  const cuda = golden<CudaCase, { profiles_threads: Record<string, number | null> }>("rng_cuda");

  const threadsOf = (c: CudaCase): number =>
    c.threads_cap !== undefined ? (c.threads_cap ?? 0) : (cuda.meta.profiles_threads[c.profile!] ?? 0);

  const philox = (n: number, seed: bigint, offset: bigint, threads: number): [Float32Array, bigint] => {
    const out = new Float32Array(n);
    const next = native.philoxRandn(out, seed, offset, threads, 1);
    assert.equal(native.philoxSkip(n, offset, threads), next);
    return [out, next];
  };

  it("has all cases", () => {
    assert.equal(cpu.cases.length, 306);
    assert.equal(cuda.cases.length, 113);
  });

  it("gives the CPU stream bit for bit, with every instruction set", () => {
    onEveryIsa(() => {
      for (const c of cpu.cases) assert.equal(sha256(cpuValues(c)), c.sha256_avx2, `${c.id}, ${native.isa()}`);
    });
  });

  it("gives the CUDA stream within 2e-5 and its words exactly, with every instruction set", () => {
    onEveryIsa(() => {
      for (const c of cuda.cases.filter(({ kind }) => kind === "randn" || kind === "profile")) {
        const n = product(c.shape!);
        const seed = BigInt(c.seed);
        const [values, next] = philox(n, seed, 0n, threadsOf(c));
        const compared = c.indices === undefined ? values : c.indices.map((i) => values[i]!);
        assert.ok(worst(compared, cuda.raw(c.data!).data) <= 2e-5, c.id);
        if (c.u32_sha256 !== undefined) {
          const words = new Uint32Array(4 * n);
          native.philoxWords(words, seed, 0n, threadsOf(c));
          assert.equal(sha256(words), c.u32_sha256, c.id);
        }
        if (c.philox_offset_after !== undefined) {
          assert.equal(next, BigInt(c.philox_offset_after), c.id);
          assert.ok(worst(philox(20, seed, next, threadsOf(c))[0], cuda.raw(c.next_call_20!).data) <= 2e-5, c.id);
        }
      }
    });
  });

  it("moves the CUDA offset on from call to call", () => {
    for (const c of cuda.cases.filter(({ kind }) => kind === "sequence")) {
      let offset = 0n;
      const parts = c.calls!.map((n) => {
        const [values, next] = philox(n, BigInt(c.seed), offset, threadsOf(c));
        offset = next;
        return values;
      });
      assert.ok(worst(joined(parts), cuda.raw(c.data!).data) <= 2e-5, c.id);
    }
  });

  it("agrees with values that real cards printed", () => {
    const anchors = cuda.cases.filter(({ kind }) => kind === "published_real_gpu_values");
    assert.deepEqual(
      anchors.map((c) => c.threads_cap),
      [43008, 221184],
    );
    for (const c of anchors) {
      const [values] = philox(product(c.shape!), BigInt(c.seed), 0n, c.threads_cap!);
      for (const [start, printed] of Object.entries(c.expected!)) {
        const from = Number(start);
        assert.ok(worst(values.subarray(from, from + printed.length), printed) <= 6e-5, `${c.id} at ${start}`);
      }
    }
  });
});
