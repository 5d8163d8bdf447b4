import assert from "node:assert/strict";
import { fakeGpu, onFakeGpu } from "../../helpers/process/fake-gpu.js";

/** A tensor of that many values goes to a device with "auto" too. */
const LARGE = "[1, 4, 256, 257]";

/** Noise of the GPU's stream, the same on the processor, and how often it was made there. */
const NOISE = `
  const { scaledRandn } = await import(${JSON.stringify(import.meta.resolve("#src/tensor/random.js"))});
  const noise = (shape, seed = 1n) => randn(shape, { seed, source: "GPU" });
  const here = (work) => withDevice("cpu", work);
  const made = () => counted("lk_philox_normals")[0];
`;

describe("noise of the GPU's stream on a device", () => {
  it("is drawn once, for its first reader", async () => {
    const program = `${NOISE}
      const x = noise([3, 5]);
      send([x.isAway, x.onDevice.cuda.name, made(), openCuda(0).cuda.memory.lent]);
      const doubled = [ops.scale(x, 2), ops.scale(x.reshape([15]), 2)];
      send([made(), ...doubled.map((y) => bits(y) === bits(here(() => ops.scale(noise([3, 5]), 2))))]);
      send([bits(x) === bits(here(() => noise([3, 5]))), x.isAway, made(), counted("misuses")[0]]);
    `;
    assert.deepEqual(await onFakeGpu(program), [
      [true, "cuda:0", 0, 0],
      [1, true, true],
      [true, false, 1, 0],
    ]);
  });

  it("advances its stream at once, read or not, also from out", async () => {
    const program = `${NOISE}
      const sizes = [[3, 5], [0, 2], [2000], [1], [3, 5]];
      const drawn = (card) => {
        const generator = createGenerator({ seed: 9n, source: "GPU", card });
        return sizes.map((shape, i) => generator.randn(shape, i === 2 ? Tensor.zeros(shape) : undefined));
      };
      for (const card of ["T4", { threads: 256 }]) {
        const [wanted, found] = [here(() => drawn(card).map(bits)), drawn(card)];
        // the last first
        send(sizes.map((_, i) => i).reverse().every((i) => bits(found[i]) === wanted[i]));
      }
    `;
    assert.deepEqual(await onFakeGpu(program), [true, true]);
  });

  it("is copied for readers who may write into it", async () => {
    const program = `${NOISE}
      const x = noise([2, 3]);
      const [copy, flat] = [x.clone(), x.reshape([6])];
      send([copy.isAway, made()]);
      const wanted = here(() => noise([2, 3])).data;
      flat.data[4] = 9;
      send([x.data[4], copy.data[4] === wanted[4], copy.data[0] === x.data[0], ops.scale(x, 2).data[4]]);
    `;
    assert.deepEqual(await onFakeGpu(program), [
      [true, 0],
      [9, true, true, 18],
    ]);
  });

  it("is drawn where it is read: on another device, on the CPU", async () => {
    const program = `${NOISE}
      const wanted = here(() => bits(ops.scale(noise([2, 3]), 2)));
      const [x, y] = [noise([2, 3]), noise([2, 3])];
      const there = withDevice("cuda:1", () => ops.scale(x, 2));
      send([there.onDevice.cuda.name, bits(there) === wanted]);
      const before = made();
      send([here(() => bits(ops.scale(y, 2))) === wanted, made() - before, counted("misuses")[0]]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu("devices=2")), [
      ["cuda:1", true],
      [true, 0, 0],
    ]);
  });
});

describe("noise that injectNoise mixes @long", () => {
  it("is drawn by injectNoise where it is unread, with the same bits", async () => {
    const program = `${NOISE}
      const shapes = [[1, 1, 1, 1], [2, 3, 5, 7], [1, 4, 16, 16], [3, 2, 33, 20]];
      const injected = (shape, bit, random) => {
        const [base, added] = [ops.scale(Tensor.full(shape, 0.25), 2), noise(shape, 2n)];
        const mask = bit & 4 ? ops.scale(noise([1, 3, 2], 4n), 0.2) : undefined;
        const settings = { strength: 0.4, average: (bit & 1) > 0, normalize: (bit & 2) > 0, mask, mix: 0.3, random };
        return bits(ops.injectNoise(base, added, settings));
      };
      for (const shape of shapes) for (let bit = 0; bit < 8; bit++) {
        const random = () => (bit % 3 > 0 ? noise(shape, 3n) : scaledRandn(shape, 1.5, { seed: 3n, source: "GPU" }));
        const wanted = here(() => injected(shape, bit, random()));
        const unread = random();
        const [before] = counted("lk_inject_drawn");
        const [first, again] = [injected(shape, bit, unread), injected(shape, bit, unread)];
        const draws = counted("lk_inject_drawn")[0] - before;
        const isSame = bits(unread) === here(() => bits(random()));
        // in fours, else into memory first
        const expected = shape[3] % 4 === 0 ? 2 : 0;
        if (first !== wanted || again !== wanted || draws !== expected || !isSame) send([shape, bit, draws, isSame]);
      }
      send([counted("lk_inject", "lk_inject_drawn", "misuses"), warnings]);
    `;
    // both twice for two shapes and eight settings
    assert.deepEqual(await onFakeGpu(program), [[[32, 32, 0], []]]);
  });

  it("is used as it is where it was read or is overwritten", async () => {
    const program = `${NOISE}
      const shape = [2, 3, 5, 7];
      const base = ops.scale(Tensor.full(shape, 0.25), 2);
      const inject = (settings, out) => ops.injectNoise(base, base, { strength: 0.4, ...settings }, out);
      const random = noise(shape);
      inject({ mix: 0, random });
      send([made(), ...counted("lk_inject", "lk_inject_drawn")]);
      ops.scale(random, 2);
      const wanted = here(() => bits(inject({ mix: 0.5, random: noise(shape) })));
      send([bits(inject({ mix: 0.5, random })) === wanted, made(), ...counted("lk_inject", "lk_inject_drawn")]);
      const target = noise(shape, 5n);
      send(bits(inject({ mix: 0.5, random: noise(shape) }, target)) === wanted);
      const both = noise(shape, 6n);
      send(refused(() => inject({ mix: 0.5, random: both }, both))[1]);
    `;
    const [nothing, read, over, refusal] = await onFakeGpu(program);
    assert.deepEqual([nothing, read, over], [[0, 1, 0], [true, 1, 2, 0], true]);
    assert.match(String(refusal), /"options\.random": expected memory separate from the output/);
  });
});

describe("noise that a device cannot draw @long", () => {
  const FILLED = `
    const filler = [];
    const { cuda } = openCuda(0);
    try { for (;;) filler.push(cuda.take(512)); } catch (error) { send(error.status); }
  `;
  const noRoom = "cuda:0 is out of memory for an operation: it runs on the CPU instead, with the same result.";

  it("is drawn by the CPU for every reader", async () => {
    const program = `${NOISE}
      const shape = [1, 4, 16, 16];
      const base = ops.scale(Tensor.full(shape, 0.25), 2);
      const [x, y, random] = [noise(shape), noise(shape), noise(shape)];
      ${FILLED}
      const wanted = here(() => [noise(shape), ops.scale(noise(shape), 2)].map(bits));
      send([bits(x), bits(ops.scale(y, 2))].every((found, i) => found === wanted[i]));
      const mix = (random) => bits(ops.injectNoise(base, base, { strength: 0.4, mix: 0.5, random }));
      send([random.isAway, mix(random) === here(() => mix(noise(shape)))]);
      await settled();
      send([warnings, counted("misuses")[0]]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu("memory=65536")), [
      "no-memory",
      true,
      [true, true],
      [[noRoom], 0],
    ]);
  });

  it("has the same values if its download into out fails", async () => {
    const program = `${NOISE}
      const generator = createGenerator({ seed: 1n, source: "GPU" });
      const [first, second] = [generator.randn([2000], Tensor.zeros([2000])), generator.randn([3])];
      const wanted = here(() => {
        const generator = createGenerator({ seed: 1n, source: "GPU" });
        return [generator.randn([2000]), generator.randn([3])].map(bits);
      });
      await settled();
      send([bits(first) === wanted[0], bits(second) === wanted[1], warnings]);
    `;
    const env = fakeGpu("fail=cuMemcpyDtoHAsync_v2:2:1");
    assert.deepEqual(await onFakeGpu(program, env), [[true, true, [noRoom]]]);
  });

  it("is drawn by the CPU after a fault with auto; fails on that device", async () => {
    const program = `${NOISE}
      const [x, y] = [noise(${LARGE}), noise(${LARGE}, 2n)];
      send(refused(() => ops.std(ops.scale(noise(${LARGE}, 3n), 2)))[0]);
      send(withDevice("cuda:0", () => refused(() => x.data)[0]));
      send([bits(x) === here(() => bits(noise(${LARGE}))), ops.scale(y, 2).isAway]);
      await settled();
      send(warnings);
    `;
    const warning = "cuda:0 failed: its operations run on the CPU instead, with the same result.";
    const env = fakeGpu("fail=lk_scale:719:1", { LATENTKIT_DEVICE: "auto" });
    assert.deepEqual(await onFakeGpu(program, env), ["device.lost", "device.unavailable", [true, false], [warning]]);
  });

  it("fails with the device's error if drawing it fails", async () => {
    const program = `${NOISE}
      const x = noise([5]);
      send([refused(() => x.data)[0], refused(() => x.data)[0]]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu("fail=lk_philox_normals:719:1")), [
      ["device.lost", "device.unavailable"],
    ]);
  });
});
