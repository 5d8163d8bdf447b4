import assert from "node:assert/strict";
import { loadNative } from "#src/native/load.js";
import { golden } from "../../helpers/tensor/golden.js";

const native = loadNative();

interface InjectCase {
  id: string;
  strength: number;
  average: boolean;
  normalize: boolean;
  latent?: string;
  noise?: string;
  mask?: string;
  image?: string;
  mix?: number;
  seed?: string;
  out?: string;
}

interface MaskCase {
  id: string;
  image: string;
  channel: string;
  mask?: string;
}

function repeated(data: Float32Array, times: number): Float32Array {
  const all = new Float32Array(data.length * times);
  for (let i = 0; i < times; i++) all.set(data, i * data.length);
  return all;
}

function randn(seed: bigint, n: number): Float32Array {
  const state = new Uint8Array(native.mtStateBytes);
  native.mtSeed(state, seed);
  const out = new Float32Array(n);
  native.mtRandn(state, out);
  return out;
}

describe("native injectNoise and imageToMask against the reference", () => {
  const inject = golden<InjectCase>("inject_noise");
  const masks = golden<MaskCase, { mean3_lut_tensor: string }>("image_to_mask");

  it("injects noise: bit for bit, 1e-6 if a mask is resized", () => {
    // the node's own cases (what comes from where, what is refused) are asserted through the node
    const cases = inject.cases.filter((c) => c.out && c.latent && c.noise && !c.image && !c.id.startsWith("negative"));
    assert.ok(cases.length >= 46);
    for (const c of cases) {
      const latent = inject.raw(c.latent!);
      const shape = [...latent.shape];
      let base = latent.data as Float32Array;
      let noise = inject.raw(c.noise!).data as Float32Array;
      let mask: Float32Array | undefined;
      let maskShape: [number, number, number] | undefined;
      let resized = false;
      if (c.mask !== undefined) {
        const stored = inject.raw(c.mask);
        const [height, width] = [stored.shape.at(-2)!, stored.shape.at(-1)!];
        mask = stored.data as Float32Array;
        maskShape = [mask.length / (height * width), height, width];
        resized = height !== shape[2] || width !== shape[3];
        if (shape[0] === 1) {
          shape[0] = maskShape[0];
          base = repeated(base, shape[0]);
          noise = repeated(noise, shape[0]);
        }
      }
      const mix = c.mix ?? 0;
      const random = mix > 0 ? randn(BigInt(c.seed!), base.length) : undefined;
      const out = new Float32Array(base.length);
      const run = () =>
        native.injectNoise(out, base, noise, {
          strength: c.strength,
          average: c.average,
          normalize: c.normalize,
          ...(shape.length === 4 ? { shape } : {}),
          ...(mask && maskShape ? { mask, maskShape } : {}),
          mix,
          ...(random ? { random } : {}),
        });
      const expected = inject.raw(c.out!).data as Float32Array;
      if (expected.some((value) => Math.abs(value) === Number.POSITIVE_INFINITY)) {
        // decided: an error instead of infinities
        assert.throws(run, RangeError, c.id);
        continue;
      }
      run();
      if (resized)
        assert.ok(
          out.every((value, i) => Math.abs(value - expected[i]!) <= 1e-6),
          c.id,
        );
      else
        assert.ok(
          out.every((value, i) => Object.is(value, expected[i])),
          c.id,
        );
    }
  });

  it("takes masks from images bit for bit", () => {
    let compared = 0;
    for (const c of masks.cases) {
      if (c.mask === undefined) continue;
      const image = masks.raw(c.image);
      const channels = image.shape.at(-1)!;
      const [batch, height, width] = [image.shape[0]!, image.shape[1]!, image.shape[2]!];
      // decided: the reference takes an axis of size 1 for another; other types and two channels are the node's business
      if (
        !(image.data instanceof Float32Array) ||
        ![1, 3, 4].includes(channels) ||
        batch !== 1 ||
        height === 1 ||
        width === 1
      )
        continue;
      const out = new Float32Array(height * width);
      native.channelToMask(out, image.data, channels, ["red", "green", "blue"].indexOf(c.channel));
      assert.deepEqual(out, masks.raw(c.mask).data, c.id);
      compared++;
    }
    assert.ok(compared >= 24, `${compared} cases`);
  });

  it("has the reference's mean for all 256 levels", () => {
    const levels = Float32Array.from({ length: 256 }, (_, i) => (i + 0.5) / 255);
    const out = new Float32Array(256);
    native.channelToMask(out, levels, 1, 0);
    assert.deepEqual(out, masks.raw(masks.meta.mean3_lut_tensor).data);
  });
});
