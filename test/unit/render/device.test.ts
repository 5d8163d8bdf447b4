import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hashesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { latentkit } from "../../helpers/process/cli.js";
import { fakeGpu, onFakeGpu } from "../../helpers/process/fake-gpu.js";

const EXAMPLE = join(root, "examples/first-light.json");
/** Its output nodes, all of which write pictures or show texts. */
const TARGETS = "11,18,19,20";

/** A chain of latent nodes: noise, noise over it through a mask, mixed and normalised, scaled by a schedule. */
const CHAIN = `
  const chain = () => {
    const pipe = { model: { sampling: latentkit.modelSampling("sd15") },
      loader_settings: { batch_size: 2, empty_latent_height: 128, empty_latent_width: 136 } };
    const source = latentkit.defineNode({ key: "source", inputs: {}, outputs: { pipe: "PIPE_LINE", mask: "MASK" },
      run: () => ({ pipe, mask: Tensor.full([2, 5, 7], 0.25) }) });
    const registry = latentkit.createRegistry([source], latentkit.registry);
    const schedule = { sampler_name: "euler", scheduler: "karras", steps: 20, start_at_step: 0, end_at_step: 20 };
    const graph = {
      1: { class_type: "source", inputs: {} },
      2: { class_type: "ext latentNoisy", inputs: { ...schedule, source: "GPU", seed: 1, pipe: ["1", 0] } },
      3: { class_type: "ext latentNoisy", inputs: { ...schedule, source: "CPU", seed: 2, pipe: ["1", 0] } },
      4: { class_type: "ext injectNoiseToLatent", inputs: { strength: 0.3, normalize: true, average: false,
        pipe_to_noise: ["2", 0], latent: ["2", 1], noise: ["3", 1], mask: ["1", 1], mix_randn_amount: 0.2, seed: 3 } },
      5: { class_type: "ext latentNoisy", inputs: { ...schedule, start_at_step: 10, source: "GPU", seed: 4,
        pipe: ["1", 0], optional_latent: ["4", 0] } },
    };
    return { graph, registry, targets: ["5"] };
  };
`;

describe("a graph on a device @long", () => {
  it("keeps its latents there between the nodes", async () => {
    const program = `${CHAIN}
      const { graph, ...options } = chain();
      const { status, outputs, error } = await render(graph, { ...options, device: "cuda:0" });
      if (status !== "success") send(error.message);
      const { samples } = outputs[5][1];
      const bytes = samples.size * 4;
      // up go the noise of the processor's stream, twice, and the mask; down one deviation
      send([status, samples.isAway, counted("bytes in")[0] - 2 * bytes, counted("bytes out")[0] < 64, ...counted("misuses")]);
      const here = await render(graph, { ...options, device: "cpu" });
      send([bits(here.outputs[5][1].samples) === bits(samples)]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu("", { LATENTKIT_DEVICE: "auto" })), [
      ["success", true, 2 * 5 * 7 * 4, true, 0],
      [true],
    ]);
  });

  it("shares results with runs on other devices", async () => {
    const program = `${CHAIN}
      const { graph, ...options } = chain();
      const cache = latentkit.createCache();
      const runs = [];
      for (const device of ["cuda:0", "cpu", "cuda:1"]) {
        runs.push(await render(graph, { ...options, device, cache, targets: ["4", "5"] }));
      }
      const [first, ...others] = runs.map(({ outputs }) => bits(outputs[5][1].samples));
      send([others.every((other) => other === first), cache.bytes > 2 * 4 * 4 * 16 * 17, ...counted("misuses")]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu("devices=2")), [[true, true, 0]]);
  });

  it("gives the memory of a result back with its last reader", async () => {
    const program = `
      const graph = { 1: { class_type: "ext pipeLoader", inputs: { ckpt_name: "preview-sd15.safetensors", positive: "",
        negative: "", batch_size: 1, empty_latent_width: 512, empty_latent_height: 512, steps: 20 } } };
      const schedule = { sampler_name: "euler", scheduler: "karras", steps: 20, start_at_step: 0, end_at_step: 20, seed: 1 };
      for (let id = 2; id <= 12; id++) {
        const inputs = { ...schedule, source: "GPU", pipe: ["1", 0] };
        graph[id] = { class_type: "ext latentNoisy", inputs: id === 2 ? inputs : { ...inputs, optional_latent: [String(id - 1), 1] } };
      }
      const { outputs } = await render(graph, { targets: ["12"] });
      send([openCuda(0).cuda.memory.lent / outputs[12][1].samples.size / 4, outputs[12][1].samples.isAway, ...counted("misuses")]);
    `;
    assert.deepEqual(await onFakeGpu(program), [[1, true, 0]]);
  });

  it("is measured and stored without losing anything", async () => {
    const program = `${CHAIN}
      import { mkdtempSync, rmSync } from "node:fs";
      const folder = mkdtempSync("${join(root, "build")}/device-cache-");
      const { graph, ...options } = chain();
      const run = () => render(graph, { ...options, diskCache: latentkit.createDiskCache({ folder }) });
      const [first, second] = [await run(), await run()];
      send(bits(first.outputs[5][1].samples) === bits(second.outputs[5][1].samples));
      rmSync(folder, { recursive: true });
    `;
    assert.deepEqual(await onFakeGpu(program), [true]);
  });
});

describe("pictures from a device @long", () => {
  const folder = temporaryFolder();

  it("are the processor's files, byte for byte", async () => {
    const render = async (device: string) => {
      const out = join(folder(), device.replace(":", "-"));
      const args = ["render", EXAMPLE, "--targets", TARGETS, "--device", device, "--out", out, "--quiet"];
      const ran = await latentkit(args, { env: fakeGpu("", { LATENTKIT_DEVICE: "auto" }) });
      assert.deepEqual([ran.code, ran.stderr], [0, ""]);
      return hashesIn(out);
    };
    const here = await render("cpu");
    assert.ok(Object.keys(here).length >= 4);
    assert.deepEqual(await render("cuda:0"), here);
    assert.deepEqual(await render("auto"), here);
  });

  it("are filtered there: what comes back are bytes", async () => {
    const program = `
      const [width, height] = [33, 17];
      const images = ops.planesToImage(randn([2, 3, height, width], { seed: 1n, source: "GPU" }));
      const image = images.reshape([2 * height, width, 3]);
      const file = await latentkit.encodePng(image, { level: 4, text: { a: "b" } });
      const samples = 2 * width * height * 3;
      send([image.isAway, counted("bytes out")[0] - 2 * samples - 2 * height]);
      const same = await latentkit.encodePng(Tensor.from(image.data, image.shape), { level: 4, text: { a: "b" } });
      send([file.equals(same), ...counted("misuses")]);
    `;
    assert.deepEqual(await onFakeGpu(program), [
      [true, 0],
      [true, 0],
    ]);
  });

  it("come from here if the device has no memory left to filter them", async () => {
    const program = `
      const noise = randn([1, 3, 64, 64], { seed: 1n, source: "GPU" });
      const image = ops.planesToImage(noise);
      send(image.isAway);
      const filler = [];
      const { cuda } = openCuda(0);
      try { for (;;) filler.push(cuda.take(1024)); } catch (error) { send(error.status); }
      const file = await latentkit.encodePng(image);
      // used last: blocks that nothing refers to any more would be collected, and leave room
      const isFull = filler.length > 0 && noise.isAway;
      const isAway = image.isAway;
      send([isAway, isFull, file.equals(await latentkit.encodePng(Tensor.from(image.data, image.shape)))]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu("memory=400000")), [true, "no-memory", [false, true, true]]);
  });
});

describe("rendering threads on a device @long", () => {
  const folder = temporaryFolder();

  it("share it, and give it back when they end", async () => {
    const program = `
      const items = Array.from({ length: 6 }, (_, i) => ({ "8.seed": i }));
      const statuses = [];
      for (const device of ["cuda:0", "cpu"]) {
        const outputDir = ${JSON.stringify(folder())} + "/" + device.replace(":", "-");
        const options = { concurrency: 2, targets: ["11"], device, outputDir };
        for await (const event of latentkit.batch(${JSON.stringify(EXAMPLE)}, items, options)) {
          if (event.type === "batch-done") statuses.push([event.status, event.done]);
          if (event.type === "item-failed") statuses.push(event.error.message);
        }
      }
      const launches = counted("cuLaunchKernel")[0];
      send([statuses, launches > 12, counted("misuses", "leaked")]);
    `;
    const [[statuses, isUsed, left]] = (await onFakeGpu(program)) as [[unknown, boolean, number[]]];
    assert.deepEqual(
      [statuses, isUsed],
      [
        [
          ["success", 6],
          ["success", 6],
        ],
        true,
      ],
    );
    assert.deepEqual(left, [0, 0]);
    const here = hashesIn(join(folder(), "cpu"));
    assert.ok(Object.keys(here).filter((name) => name.endsWith(".png")).length >= 6);
    assert.deepEqual(hashesIn(join(folder(), "cuda-0")), here);
  });

  it("and processes end in the middle of work on it", async () => {
    const program = `
      const image = ops.planesToImage(randn([1, 3, 300, 300], { seed: 1n, source: "GPU" }));
      for (let i = 0; i < 4; i++) void latentkit.encodePng(image);
      send(image.isAway);
      setTimeout(() => process.exit(0), MS);
    `;
    for (const ms of [0, 20]) assert.deepEqual(await onFakeGpu(program.replace("MS", String(ms))), [true]);
  });

  it("survive being ended in the middle of work on it", async () => {
    const loop = `
      import(${JSON.stringify(import.meta.resolve("#src/tensor/ops.js"))}).then(async (ops) => {
        const { Tensor } = await import(${JSON.stringify(import.meta.resolve("latentkit"))});
        const { encodePng } = await import(${JSON.stringify(import.meta.resolve("latentkit"))});
        let x = ops.scale(Tensor.full([64, 64, 3], 1), 1);
        require("node:worker_threads").parentPort.postMessage("going");
        for (let i = 0; ; i++) {
          x = ops.scale(x, 1.0001);
          encodePng(x);
          if (i % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
      });
    `;
    const program = `
      import { Worker } from "node:worker_threads";
      for (let i = 0; i < 4; i++) {
        const worker = new Worker(${JSON.stringify(loop)}, { eval: true, execArgv: [] });
        await new Promise((resolve, reject) => worker.on("message", resolve).on("error", reject));
        await new Promise((resolve) => setTimeout(resolve, 20 * i));
        await worker.terminate();
      }
      const y = ops.scale(Tensor.full([8], 2), 2);
      send([y.isAway, y.data[0], ...counted("misuses")]);
    `;
    assert.deepEqual(await onFakeGpu(program), [[true, 4, 0]]);
  });
});

describe("--device @long", () => {
  const folder = temporaryFolder();
  const run = (args: string[], env: Record<string, string> = {}) =>
    latentkit(["render", EXAMPLE, "--targets", "11", "--out", join(folder(), "out"), ...args], {
      env: fakeGpu("", { LATENTKIT_DEVICE: "", ...env }),
    });

  it("is refused in one sentence if it names none, or one that cannot be used", async () => {
    const refusals: [args: string[], env: Record<string, string>, code: number, stderr: RegExp][] = [
      [
        ["--device", "gpu"],
        {},
        2,
        /^latentkit: --device: expected auto, cpu or cuda:N, received "gpu"\. --models-device sets where networks run\.\n$/,
      ],
      [
        ["--device", "cuda:7"],
        {},
        1,
        /^(?:Without a model, .+\n)?latentkit: Device cuda:7 cannot be used: There is no cuda:7: the driver reports one device, .+\.\n$/,
      ],
      [
        ["--device", "cuda:0"],
        { LATENTKIT_CUDA: "/nonexistent.so" },
        1,
        /^Without a model, .+\nlatentkit: Device cuda:0 .+ no CUDA library .+\.\n$/,
      ],
      [[], { LATENTKIT_DEVICE: "cuda:7" }, 1, /^latentkit: Device cuda:7 cannot be used/m],
      [
        [],
        { LATENTKIT_DEVICE: "gpu" },
        3,
        /^latentkit: Environment variable LATENTKIT_DEVICE: expected auto, cpu or cuda:N, received "gpu"\.\n$/,
      ],
      [["--seeds", "0..1", "--device", "cuda:7"], {}, 1, /^latentkit: Device cuda:7 cannot be used/m],
    ];
    for (const [args, env, code, stderr] of refusals) {
      const ran = await run(args, env);
      assert.match(ran.stderr, stderr);
      assert.deepEqual([ran.code, ran.stdout], [code, ""], ran.stderr);
    }
    assert.deepEqual(hashesIn(join(folder(), "out")), {});
  });

  it("comes from a configuration file, and from the command line before that", async () => {
    mkdirSync(folder(), { recursive: true });
    const config = join(folder(), "latentkit.yaml");
    writeFileSync(config, "device: cuda:9\n");
    assert.match((await run(["--config", config])).stderr, /Device cuda:9 cannot be used/);
    const ran = await run(["--config", config, "--device", "cuda:0", "--quiet"]);
    assert.deepEqual([ran.code, ran.stderr], [0, ""]);
  });

  it("of doctor's: device, driver, memory, and why not @long", async () => {
    const doctor = async (env: Record<string, string>) =>
      (await latentkit(["doctor"], { env: fakeGpu("devices=2", { LATENTKIT_DEVICE: "", ...env }) })).stdout;
    const used = await doctor({});
    assert.match(used, /^ok {3}CUDA .*latentkit_cuda\.so$/m);
    assert.match(
      used,
      /^ok {3}cuda:0 +Fake CUDA device 0, capability 9\.0, 8\.0 GiB, 8\.0 GiB free, CUDA 13\.0; used$/m,
    );
    assert.match(used, /^ok {3}cuda:1 +Fake/m);
    assert.match(
      await doctor({ LATENTKIT_CUDA: "/none.so" }),
      /cuda:0 .+; not used: This installation has no CUDA library/,
    );
    assert.match(
      await doctor({ LATENTKIT_DEVICE: "cpu" }),
      /cuda:0 .+; not used: The device option \(or LATENTKIT_DEVICE\) is set to cpu\./,
    );
    assert.match(await doctor({ LATENTKIT_CUDA_DRIVER: "libnone.so" }), /CUDA +not used: No CUDA driver was found/);
  });
});
