import assert from "node:assert/strict";
import { fakeGpu, onFakeGpu } from "../../../helpers/process/fake-gpu.js";

/** "auto" leaves what is smaller on the processor. */
const LARGE = "[1, 4, 256, 257]";

const auto = (settings = "") => fakeGpu(settings, { LATENTKIT_DEVICE: "auto" });

/** Functions of these modules that compute on the CPU alone, or check. */
const ON_CPU = [
  "interpolateDirections",
  "latentToRgb",
  "itemValues",
  "mirrored",
  "requireInside",
  "turned",
  "upsideDown",
];

/** Every operation on tensors of one seed, as the names and bits of its results. */
const EVERYTHING = `
  const tensors = await Promise.all([${["latents", "parts", "items"].map((name) => `import(${JSON.stringify(import.meta.resolve(`#src/tensor/${name}.js`))})`)}]);
  const operations = Object.assign({}, ops, ...tensors);
  const called = new Set();
  const watched = Object.fromEntries(
    Object.entries(operations).map(([name, call]) => [name, (...given) => (called.add(name), call(...given))]),
  );
  const everything = (ops = watched) => {
    const [b, c, h, w] = [2, 3, 33, 17];
    const shape = [b, c, h, w];
    const noise = (seed) => randn(shape, { seed, source: "GPU" });
    const [x, y, z] = [noise(1n), noise(2n), randn(shape, { seed: 3n })];
    const mask = ops.scale(randn([b, 5, 7], { seed: 4n }), 0.1);
    const image = ops.planesToImage(x);
    const settings = { strength: 0.3, normalize: true, mask, mix: 0.5, random: z };
    const generator = createGenerator({ seed: 5n, source: "GPU" });
    const results = {
      x, z, mask, image,
      scale: ops.scale(x, 0.18215),
      axpy: ops.axpy(x, y, 0.7),
      average: ops.average(x, z),
      lerp: ops.lerp(x, y, 0.3),
      sum: ops.weightedSum([[-6.5, x], [7.5, y], [1 / 3, z]]),
      sums: ops.repeatedSum([[-6.5, x], [7.5, y]], 2),
      added: ops.addMasked(x, ops.cropped(y, 2, { top: 3, left: 2, height: 5, width: 7 }), mask, 20, 9),
      crop: ops.cropped(ops.scale(z, 2), 1, { top: 1, left: 32, height: 2, width: 1 }),
      concat: ops.joined([z, x, y], 2),
      slice: ops.narrowed(x, -1, 3, 9),
      cycled: ops.cycled(x, 5),
      resize: ops.resizeBilinear(mask, 40, 9),
      blend: ops.maskedBlend(x, y, mask),
      fitting: ops.maskedBlend(x, y, ops.resizeBilinear(mask, h, w)),
      paste: ops.composite(x, ops.resizeBilinear(y, 9, 9), 5, -2),
      pasteMasked: ops.composite(x, ops.resizeBilinear(y, 5, 7), 5, 20, mask),
      inject: ops.injectNoise(x, y, settings),
      averaged: ops.injectNoise(x, y, { strength: 2, average: true }),
      channel: ops.channelToMask(image, 1),
      resized: ops.resizeToImage(x, 50, 40),
      repeated: ops.repeated(x, 3),
      withLast: ops.withLast(x, 5),
      first: generator.randn([3, 5]),
      second: generator.randn([7]),
      batch: randn([3, 4, 5, 5], { seed: 6n, batchIndex: [2, 0, 2] }),
      batchGpu: randn([3, 4, 5, 5], { seed: 6n, source: "GPU", batchIndex: [1, 1, 0] }),
      clone: ops.scale(x, 3).clone(),
      reshaped: x.reshape([b * c, h * w]),
      pixels: ops.fromBytes(ops.toBytes(image), image.shape),
      one: ops.fromBytes(ops.itemToBytes(image, 1), image.shape.slice(1)),
      deep: ops.fromBytes(ops.itemToUint16(image, 1), [(2 * image.size) / image.shape[0]]),
      none: ops.scale(randn([0, 4], { seed: 1n, source: "GPU" }), 2),
    };
    const numbers = { std: ops.std(x), items: ops.stdOfItems(x), error: ops.scaledError(x, y, z, 0.01, 0.05), products: ops.productOfItems(x, y) };
    results.summed = ops.sumOfItems([[[1, 2], x], [[0.5, -3], y]]);
    results.term = ops.termsOfItems([[[1, 2], x], [[0.5, -3], y]])[0][1];
    return { ...numbers, ...Object.fromEntries(Object.entries(results).map(([name, found]) => [name, [found.shape, bits(found)]])) };
  };
`;

describe("operations on a device", () => {
  it("have the CPU's bits, each of them", async () => {
    const program = `${EVERYTHING}
      const here = withDevice("cpu", everything);
      const [launchesBefore] = counted("cuLaunchKernel");
      const there = everything();
      const differing = Object.keys(here).filter((name) => JSON.stringify(here[name]) !== JSON.stringify(there[name]));
      const uncalled = Object.keys(operations).filter((name) => !called.has(name));
      send([uncalled, differing, launchesBefore, counted("cuLaunchKernel")[0] > 20, warnings, counted("misuses")]);
    `;
    assert.deepEqual(await onFakeGpu(program), [[ON_CPU, [], 0, true, [], [0]]]);
  });

  it("leave their results on the device until they are read", async () => {
    const program = `
      const x = randn([4, 4], { seed: 1n, source: "GPU" });
      const y = ops.axpy(ops.scale(x, 2), x, 3).reshape([16]).clone();
      const before = counted("bytes in", "bytes out");
      send([y.size, y.shape, y.hasShape([16]), y.isAway, before]);
      const values = [...y.data];
      send([values.every((value, i) => Math.abs(value - 5 * x.data[i]) < 1e-5), y.isAway, counted("bytes in", "bytes out")]);
      y.data[0] = 7;
      send([ops.scale(y, 1).data[0], counted("bytes in", "bytes out")]);
    `;
    assert.deepEqual(await onFakeGpu(program), [
      [16, [16], true, true, [0, 0]],
      [true, false, [0, 128]],
      [7, [64, 192]],
    ]);
  });

  it("share memory between tensors, also after one of them was read and written", async () => {
    const program = `
      const x = randn([2, 3], { seed: 1n, source: "GPU" });
      const [flat, tall] = [x.reshape([6]), x.reshape([3, 2])];
      flat.data[4] = 9;
      send([x.data === flat.data, ops.scale(tall, 2).data[4], tall.isAway, x.data[4]]);
      const y = ops.scale(x, 1);
      const same = y.reshape([6]);
      ops.scale(same, 3, same);
      send(y.data[4]);
    `;
    assert.deepEqual(await onFakeGpu(program), [[true, 18, false, 9], 27]);
  });

  it("cannot be sent to another thread without their values", async () => {
    const program = `
      const x = ops.scale(Tensor.full([3], 2), 2);
      send(refused(() => structuredClone(x))[1]);
      send([...structuredClone(x.data)]);
    `;
    const [refusal, values] = await onFakeGpu(program);
    assert.match(String(refusal), /could not be cloned/);
    assert.deepEqual(values, [4, 4, 4]);
  });

  it("scale the noise they make in the same launch", async () => {
    const program = `
      const { scaledRandn } = await import(${JSON.stringify(import.meta.resolve("#src/tensor/random.js"))});
      const options = { seed: 7n, source: "GPU" };
      const before = counted("cuLaunchKernel")[0];
      const noise = bits(scaledRandn([3, 1000], 14.6, options));
      send(counted("cuLaunchKernel")[0] - before);
      send(noise === bits(withDevice("cpu", () => ops.scale(randn([3, 1000], options), 14.6))));
    `;
    assert.deepEqual(await onFakeGpu(program), [1, true]);
  });

  it("write into out on either side, over an input too", async () => {
    const program = `
      const here = Tensor.full([5], 2);
      const { data } = here;
      send([ops.scale(here, 2, here) === here, here.data === data, [...data]]);
      const pasted = Tensor.zeros([1, 1, 1, 5]);
      const target = pasted.data;
      ops.composite(here.reshape([1, 1, 1, 5]), Tensor.full([1, 1, 1, 2], 6), 1, 0, undefined, pasted);
      const drawn = Tensor.zeros([2, 3]);
      randn([2, 3], { seed: 1n, source: "GPU", batchIndex: [1, 1], out: drawn });
      send([[...target], pasted.isAway, drawn.data[0] !== 0, drawn.data[0] === drawn.data[3]]);
      const there = ops.scale(here, 1);
      const noise = randn([5], { seed: 1n, source: "GPU", out: there });
      ops.composite(there.reshape([1, 1, 1, 5]), Tensor.full([1, 1, 1, 2], 6), 1, 0, undefined, there.reshape([1, 1, 1, 5]));
      send([noise === there, there.isAway, [...there.data].slice(1, 3)]);
    `;
    assert.deepEqual(await onFakeGpu(program), [
      [true, true, [4, 4, 4, 4, 4]],
      [[4, 6, 6, 4, 4], false, true, true],
      [true, true, [6, 6]],
    ]);
  });

  it("upload noise of the CPU's stream only if the device reads it", async () => {
    const program = `
      const [a, b] = [randn([100], { seed: 1n }), randn([100], { seed: 1n })];
      const before = counted("bytes in", "bytes out");
      const same = a.data.every((value, i) => value === b.data[i]);
      send([before, same, counted("bytes in", "bytes out")]);
      const c = randn([100], { seed: 1n });
      const doubled = ops.scale(ops.scale(c, 2), 0.5);
      send([counted("bytes in"), doubled.data.every((value, i) => value === a.data[i])]);
    `;
    assert.deepEqual(await onFakeGpu(program), [
      [[0, 0], true, [0, 0]],
      [[400], true],
    ]);
  });

  it("free memory when a tensor is fetched, else when it is collected", async () => {
    const program = `
      const { cuda } = openCuda(0);
      for (let i = 0; i < 50; i++) ops.scale(randn([1000], { seed: 1n, source: "GPU" }), 2).data;
      const kept = ops.scale(Tensor.full([1000], 1), 2);
      globalThis.gc();
      await settled();
      send(cuda.memory.lent);
      send(kept.data[0]);
      send([cuda.memory.lent, ...counted("misuses")]);
    `;
    const values = await onFakeGpu(program, fakeGpu("", { NODE_OPTIONS: "--expose-gc" }));
    assert.ok((values[0] as number) >= 4000 && (values[0] as number) < 10_000, String(values[0]));
    assert.deepEqual(values.slice(1), [2, [0, 0]]);
  });

  it("refuse what the CPU refuses, with the same message", async () => {
    const program = `
      const [x, y] = [Tensor.zeros([2, 2]), Tensor.zeros([3])];
      const refusals = () => [
        refused(() => ops.axpy(x, y, 1)),
        refused(() => ops.scale(x, 1, y)),
        refused(() => ops.injectNoise(x, x, { strength: 1, normalize: true })),
        refused(() => ops.composite(x, x)),
        refused(() => randn([2, -1], { seed: 1n, source: "GPU" })),
        refused(() => randn([2], { seed: 1n, source: "GPU", out: y })),
        refused(() => ops.scale(x, 1).reshape([5])),
      ];
      const [here, there] = [withDevice("cpu", refusals), refusals()];
      send([here.length, here.every(([code]) => typeof code === "string"), JSON.stringify(here) === JSON.stringify(there), there]);
    `;
    const [[count, hasCodes, isSame, there]] = (await onFakeGpu(program)) as [[number, boolean, boolean, unknown]];
    assert.deepEqual([count, hasCodes, isSame], [7, true, true], JSON.stringify(there));
  });
});

describe("the choice of a device @long", () => {
  it("auto sends large operations and those with operands on the device", async () => {
    const program = `
      const small = randn([100], { seed: 1n, source: "GPU" });
      send([small.isAway, ...counted("cuInit", "cuLaunchKernel")]);
      const large = randn(${LARGE}, { seed: 1n, source: "GPU" });
      const mask = Tensor.full([1, 2, 2], 0.5);
      send([large.isAway, ops.maskedBlend(large, large, mask).isAway, ops.scale(small, 2).isAway]);
      const part = ops.resizeBilinear(large, 3, 3);
      send([part.size, part.isAway, ops.toBytes(part).length]);
    `;
    assert.deepEqual(await onFakeGpu(program, auto()), [
      [false, 0, 0],
      [true, true, false],
      [36, true, 36],
    ]);
  });

  it("cpu neither probes nor tries a device", async () => {
    const env = fakeGpu("", { LATENTKIT_DEVICE: "cpu", LATENTKIT_CACHE_DIR: "/nonexistent" });
    const program = `send([randn(${LARGE}, { seed: 1n, source: "GPU" }).isAway, ...counted("cuInit")]);`;
    assert.deepEqual(await onFakeGpu(program, env), [[false, 0]]);
  });

  it("auto does not probe without a library", async () => {
    const env = fakeGpu("", { LATENTKIT_DEVICE: "auto", LATENTKIT_CUDA: "/nonexistent.so" });
    const program = `send([randn(${LARGE}, { seed: 1n, source: "GPU" }).isAway, ...counted("cuInit")]);`;
    assert.deepEqual(await onFakeGpu(program, env), [[false, 0]]);
  });

  it("is each run's own, also if several run at once", async () => {
    const program = `
      const node = latentkit.defineNode({
        key: "where", inputs: { seed: latentkit.seed() }, outputs: { at: "STRING" }, outputNode: true,
        run: async ({ seed }) => {
          const seen = [];
          for (let i = 0; i < 5; i++) {
            seen.push(randn([4], { seed, source: "GPU" }).isAway);
            await new Promise((resolve) => setTimeout(resolve, Number(seed) % 7));
          }
          return { at: [...new Set(seen)].join() };
        },
      });
      const registry = latentkit.createRegistry([node]);
      const devices = ["cpu", "cuda:0", "auto", undefined, "cuda:1", "cpu"];
      const runs = devices.map((device, i) =>
        render({ 1: { class_type: "where", inputs: { seed: i } } }, { registry, device }).then(({ outputs }) => outputs[1][0]));
      send(await Promise.all(runs));
    `;
    assert.deepEqual(await onFakeGpu(program, auto("devices=2")), [
      ["false", "true", "false", "false", "true", "false"],
    ]);
  });

  it("moves a tensor from another device", async () => {
    const program = `
      const x = withDevice("cuda:1", () => randn([6], { seed: 1n, source: "GPU" }));
      const y = ops.scale(x, 2);
      const { name } = y.onDevice.cuda;
      const z = withDevice("cuda:1", () => ops.axpy(y, y, 1));
      const expected = withDevice("cpu", () => ops.scale(randn([6], { seed: 1n, source: "GPU" }), 4));
      send([name, z.onDevice.cuda.name, bits(z) === bits(expected)]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu("devices=2")), [["cuda:0", "cuda:1", true]]);
  });

  const refusals: [what: string, env: Record<string, string>, reason: RegExp][] = [
    ["no driver", fakeGpu("", { LATENTKIT_DEVICE: "auto" }), /No CUDA driver was found/],
    ["a driver that is too old", fakeGpu("version=10020"), /too old: it supports CUDA 10\.2/],
    ["no device", fakeGpu("devices=0"), /cuInit returned 100|sees no device/],
    [
      "a processor that no kernel was made for",
      fakeGpu("fail=cuModuleLoadData:209"),
      /kernels did not load.*capability 9\.0/,
    ],
    ["a context that cannot be made", fakeGpu("fail=cuDevicePrimaryCtxRetain:2"), /cuDevicePrimaryCtxRetain/],
    ["no library", fakeGpu("", { LATENTKIT_CUDA: "/nonexistent.so" }), /no CUDA library/],
  ];
  for (const [what, env, reason] of refusals) {
    it(`gives the reason in one sentence: ${what}`, async () => {
      const hidden = what === "no driver" ? `process.env.LATENTKIT_CUDA_DRIVER = "libnothing-of-this-name.so";` : "";
      const program = `${hidden}
        send(refused(() => withDevice("cuda:0", () => ops.scale(Tensor.zeros([2]), 1))));
        send(await render({ 1: { class_type: "EmptyLatentImage", inputs: {} } }, { device: "cuda:0" }).catch(({ code }) => code));
        send([latentkit.device().cuda.available, latentkit.device().cuda.reason]);
        send(withDevice("auto", () => randn(${LARGE}, { seed: 1n, source: "GPU" })).isAway);
      `;
      const cache = { LATENTKIT_DEVICE: "auto" };
      const [[code, message], rendering, [available, why], isAway] = (await onFakeGpu(program, {
        ...env,
        ...cache,
      })) as [[string, string], string, [boolean, string], boolean];
      assert.deepEqual(
        [code, rendering, available, isAway],
        ["device.unavailable", "device.unavailable", false, false],
      );
      assert.match(message, /^Device cuda:0 cannot be used: .+\.$/);
      assert.match(message, reason);
      assert.match(why, reason);
    });
  }

  it("refuses a missing device and an unknown name", async () => {
    const program = `
      const on = (device) => refused(() => withDevice(device, () => ops.scale(Tensor.zeros([2]), 1)));
      send(on("cuda:2"));
      const wrong = ["gpu", "cuda", "cuda:", "cuda:-1", "CPU", "", 0, null, "cuda:1x"];
      send([...new Set(await Promise.all(wrong.map((device) =>
        render({ 1: { class_type: "EmptyLatentImage", inputs: {} } }, { device }).catch(({ code }) => code))))]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu("devices=2")), [
      [
        "device.unavailable",
        "Device cuda:2 cannot be used: There is no cuda:2: the driver reports 2 devices, cuda:0 to cuda:1.",
      ],
      ["usage.invalid"],
    ]);
  });

  it("refuses an unknown name in the environment where it is used", async () => {
    const env = fakeGpu("", { LATENTKIT_DEVICE: "gpu" });
    const program = `
      send(refused(() => ops.scale(Tensor.zeros([2]), 1)));
      send(withDevice("cpu", () => ops.scale(Tensor.full([2], 3), 1).data[1]));
    `;
    assert.deepEqual(await onFakeGpu(program, env), [
      ["usage.invalid", 'LATENTKIT_DEVICE: expected auto, cpu or cuda:N, received "gpu".'],
      3,
    ]);
  });
});

describe("a device that fails @long", () => {
  it("without memory left, lets the CPU compute the same, and warns once", async () => {
    const program = `${EVERYTHING}
      const expected = withDevice("cpu", everything);
      const found = everything();
      await settled();
      send([JSON.stringify(found) === JSON.stringify(expected), warnings]);
    `;
    // room for the trial is in another process: each driver counts its own
    const warning = "cuda:0 is out of memory for an operation: it runs on the CPU instead, with the same result.";
    assert.deepEqual(await onFakeGpu(program, fakeGpu("memory=100000")), [[true, [warning]]]);
  });

  it("without memory for a download, fetches in place or fails in one sentence", async () => {
    const program = `
      const x = ops.scale(Tensor.full([5], 2), 2);
      const refusal = refused(() => x.data);
      send([refusal, x.isAway, [...x.data]]);
    `;
    const values = [4, 4, 4, 4, 4];
    assert.deepEqual(await onFakeGpu(program, fakeGpu("fail=cuMemHostAlloc:2:1,fail=cuMemHostAlloc:2:2")), [
      [String(values), false, values],
    ]);
    const [sent] = await onFakeGpu(program, fakeGpu("fail=cuMemcpyDtoHAsync_v2:2:1"));
    const [refusal, ...after] = sent as [string[], boolean, number[]];
    assert.equal(refusal[0], "native.failed");
    assert.match(refusal[1]!, /^The values of a tensor on cuda:0 could not be fetched \(download: [^.]+\)\.$/);
    assert.deepEqual(after, [true, values]);
  });

  it("with a fault, auto computes on the CPU and leaves the device alone", async () => {
    const program = `
      const x = withDevice("cpu", () => randn(${LARGE}, { seed: 1n }));
      const lying = randn(${LARGE}, { seed: 2n, source: "GPU" });
      // a failed launch shows when it is awaited
      send([lying.isAway, refused(() => ops.std(ops.scale(lying, 2)))[0], refused(() => lying.data)[0]]);
      const launches = counted("cuLaunchKernel");
      const found = [ops.scale(x, 3), randn(${LARGE}, { seed: 2n, source: "GPU" })];
      send([found.map(({ isAway }) => isAway), String(launches) === String(counted("cuLaunchKernel"))]);
      send([refused(() => ops.axpy(x, lying, 1))[0], refused(() => withDevice("cuda:0", () => ops.scale(x, 2)))[0]]);
      await settled();
      send(warnings);
    `;
    const warning = "cuda:0 failed: its operations run on the CPU instead, with the same result.";
    assert.deepEqual(await onFakeGpu(program, auto("fail=lk_scale:719:1")), [
      [true, "device.lost", "device.lost"],
      [[false, false], true],
      ["device.lost", "device.unavailable"],
      [warning],
    ]);
  });

  it("with a fault, a run on that device fails and says so", async () => {
    const program = `
      const x = Tensor.full([100], 1);
      const failure = refused(() => ops.scale(x, 2).data);
      send([failure, refused(() => ops.scale(x, 2))[0]]);
    `;
    const message = "cuda:0 failed and its tensors are lost: restart the process, or use --device cpu.";
    assert.deepEqual(await onFakeGpu(program, fakeGpu("fail=lk_scale:719:1")), [
      [["device.lost", message], "device.unavailable"],
    ]);
  });
});
