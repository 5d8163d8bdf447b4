import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { InferenceSession, Tensor as OnnxTensor } from "onnxruntime-node";
import { sessionOptions } from "#src/host/checkpoint/session/options.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { linearSource } from "../../../../helpers/models/runtime-graphs.js";

const CPU = { provider: "cpu", threads: 1 } as const;

describe("sessionOptions", () => {
  const folder = temporaryFolder();

  /** Operators of the graph that ONNX Runtime makes of a model. */
  async function optimized(plan: "stream" | "fold", level?: "all"): Promise<string> {
    const { bytes, folder: files } = await (await linearSource(folder())).make(plan);
    const optimizedModelFilePath = join(folder(), "optimized.onnx");
    const options = { ...sessionOptions(CPU, files), optimizedModelFilePath };
    const session = await InferenceSession.create(
      bytes,
      level === undefined ? options : { ...options, graphOptimizationLevel: level },
    );
    await session.release();
    const text = readFileSync(optimizedModelFilePath, "latin1");
    rmSync(optimizedModelFilePath);
    return text;
  }

  it("let a folded weight be converted once, and a streamed one at every run", async () => {
    assert.doesNotMatch(await optimized("fold"), /Cast/);
    assert.match(await optimized("stream"), /Cast/);
  });

  it("name the folder of the weights", async () => {
    const { bytes, folder: files } = await (await linearSource(folder())).make("stream");
    await assert.rejects(InferenceSession.create(bytes, sessionOptions(CPU, "")), /external|file|path/i);
    const session = await InferenceSession.create(bytes, sessionOptions(CPU, files));
    const { y } = await session.run({ x: new OnnxTensor("float32", [1, 1, 1], [1, 3]) });
    assert.deepEqual([...(y!.data as Float32Array)], [6, 15]);
    await session.release();
  });

  if (process.platform === "linux")
    it("bound the threads of a run", async () => {
      const threads = () => readdirSync("/proc/self/task").length;
      const { bytes, folder: files } = await (await linearSource(folder())).make("fold");
      const before = threads();
      for (const count of [1, 4]) {
        const options = sessionOptions({ provider: "cpu", threads: count }, files);
        const session = await InferenceSession.create(bytes, options);
        assert.equal(threads() - before, count - 1);
        await session.release();
      }
    });

  it("use keys that this version of ONNX Runtime knows: it ignores others in silence", () => {
    const packageFolder = dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json"));
    const libraries = join(packageFolder, "bin/napi-v6", process.platform, process.arch);
    const [library] = readdirSync(libraries).filter((name) =>
      /onnxruntime\.(so|dll)|^libonnxruntime\..*dylib$/.test(name),
    );
    const code = readFileSync(join(libraries, library!));
    for (const key of ["session.intra_op.allow_spinning", "session.model_external_initializers_file_folder_path"])
      assert.ok(code.includes(`${key}\0`), key);
    assert.ok(!code.includes("session.intra_op.no_such_key\0"));
  });

  it("keep memory between runs, and name the CPU after another provider", () => {
    assert.equal(sessionOptions(CPU, "").enableCpuMemArena, true);
    assert.deepEqual(sessionOptions({ provider: "webgpu", threads: 1 }, "").executionProviders, ["webgpu", "cpu"]);
  });
});
