import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { GraphicsAdapter } from "#src/native/bindings.js";
import { root, temporaryFolder } from "../../helpers/folders.js";
import { runModule } from "../../helpers/process/fake-gpu.js";
import { softwareGpu } from "../../helpers/process/software-gpu.js";
import { skip } from "../../helpers/skip.js";

const PROGRAM = `
  import { loadNative } from ${JSON.stringify(import.meta.resolve("#src/native/load.js"))};
  console.log(JSON.stringify(loadNative().graphicsAdapters()));
`;

async function adaptersIn(env: Record<string, string>): Promise<GraphicsAdapter[]> {
  const { code, stdout, stderr } = await runModule(PROGRAM, env);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as GraphicsAdapter[];
}

/** One device of the made-up loader, as test/native/vulkan-loader.cpp lists it. */
const device = (type: string, minorVersion = 3, driver = "", info = "", float16 = false, storage = false) =>
  `{Type::k${type}, ${minorVersion}, "${driver}", "${info}", ${Number(float16)}, ${Number(storage)}}`;

describe("graphicsAdapters", () => {
  it("names the adapter that renders on the processor", async function () {
    const [adapter, ...more] = await adaptersIn(softwareGpu(this));
    assert.deepEqual(more, []);
    assert.match(adapter!.name, /SwiftShader/);
    assert.deepEqual(
      { ...adapter, name: "" },
      { name: "", vendorId: 0x1ae0, deviceId: 0xc0de, type: "cpu", driver: "SwiftShader driver", hasFloat16: false },
    );
  });

  it("is empty if no driver is installed, or no Vulkan", async function () {
    assert.deepEqual(await adaptersIn({ ...softwareGpu(this), VK_ICD_FILENAMES: join(root, "no-driver.json") }), []);
  });

  describe("with a made-up loader", () => {
    const folder = temporaryFolder();
    before(function () {
      if (process.platform !== "linux") skip(this, "a made-up loader of Vulkan is built for Linux alone");
    });

    /** Lists these devices through a loader that has them. */
    const adaptersOf = (devices: readonly string[], created = 0) => {
      const options = ["-std=c++20", "-shared", "-fPIC", "-I", join(root, "native"), `-DCREATED=${created}`];
      const source = join(root, "test/native/vulkan-loader.cpp");
      execFileSync("c++", [...options, `-DDEVICES=${devices}`, source, "-o", join(folder(), "libvulkan.so.1")]);
      return adaptersIn({ LD_LIBRARY_PATH: folder() });
    };

    it("lists first what WebGPU prefers, and of a type what the loader lists first", async () => {
      const types = ["Cpu", "Other", "Integrated", "Discrete", "Virtual", "Discrete", "Integrated"];
      const found = await adaptersOf(types.map((type) => device(type)));
      assert.deepEqual(
        found.map(({ type, name, vendorId, deviceId }) => [type, name, vendorId, deviceId]),
        [
          ["discrete", "Card 3", 0x10de, 3],
          ["discrete", "Card 5", 0x10de, 5],
          ["integrated", "Card 2", 0x10de, 2],
          ["integrated", "Card 6", 0x10de, 6],
          ["virtual", "Card 4", 0x10de, 4],
          ["cpu", "Card 0", 0x10de, 0],
          ["other", "Card 1", 0x10de, 1],
        ],
      );
    });

    it("names the driver and its version, or the version's number", async () => {
      const found = await adaptersOf([
        device("Cpu", 3, "Mesa", "22.3"),
        device("Cpu", 3, "Mesa"),
        device("Cpu"),
        device("Cpu", 0, "of a device that cannot be asked"),
      ]);
      assert.deepEqual(
        found.map(({ driver }) => driver),
        ["Mesa 22.3", "Mesa", "77", "77"],
      );
    });

    it("sees float16 if shaders compute with it and buffers hold it", async () => {
      const found = await adaptersOf([
        device("Cpu", 3, "", "", true, true),
        device("Cpu", 3, "", "", true, false),
        device("Cpu", 3, "", "", false, true),
        device("Cpu", 0, "", "", true, true),
      ]);
      assert.deepEqual(
        found.map(({ hasFloat16 }) => hasFloat16),
        [true, false, false, false],
      );
    });

    it("lists the first 32, and none if Vulkan does not start", async () => {
      const many = Array<string>(40).fill(device("Cpu"));
      assert.equal((await adaptersOf(many)).length, 32);
      assert.deepEqual(await adaptersOf(many, -9), []);
    });
  });
});
