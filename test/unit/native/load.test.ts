import assert from "node:assert/strict";
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { checkEnvironment } from "#src/native/environment.js";
import { candidates, loadFirst, loadNative } from "#src/native/load.js";
import { platformPackage } from "#src/native/platform-package.js";
import { refuses } from "../../helpers/errors.js";
import { temporaryFolder } from "../../helpers/folders.js";

describe("loadNative", () => {
  const folder = temporaryFolder();

  it("loads one module and keeps it", () => {
    const native = loadNative();
    assert.equal(loadNative(), native);
    assert.ok(native.isas().includes(native.isa()));
    assert.ok(native.threads() >= 1);
  });

  it("looks at builds first, then at the package of this platform", () => {
    const builds = ["build/Release/latentkit.node", "build/Debug/latentkit.node"].map((path) => join(folder(), path));
    assert.deepEqual(candidates(folder()), builds);
    const packaged = join(folder(), "node_modules", platformPackage(), "latentkit.node");
    mkdirSync(dirname(packaged), { recursive: true });
    writeFileSync(packaged, "");
    assert.deepEqual(candidates(folder()), [...builds, realpathSync(packaged)]);
  });

  it("takes the named file alone", () => {
    assert.deepEqual(candidates("/p", join(folder(), "other.node")), [join(folder(), "other.node")]);
    assert.equal(candidates(folder(), "").length, 2);
  });

  it("says how to mend an installation without a module", async () => {
    const files = candidates(folder());
    const error = await refuses(() => loadFirst(files), "native.unavailable", /none of these files exists/);
    for (const text of [
      ...files,
      "native-build.mjs",
      "cmake-js node-addon-api",
      "compiler",
      process.platform,
      platformPackage(),
    ])
      assert.ok(error.message.includes(text), text);
  });

  it("names a file that does not load, and the cause", async () => {
    const files = candidates(folder());
    mkdirSync(join(folder(), "build/Release"), { recursive: true });
    writeFileSync(files[0]!, "no library");
    const error = await refuses(() => loadFirst(files), "native.unavailable");
    assert.ok(error.message.includes(files[0]!));
    assert.ok(error.cause instanceof Error);
  });

  it("passes over a broken build where the next file works", () => {
    const broken = join(folder(), "latentkit.node");
    writeFileSync(broken, "no library");
    const [working] = candidates(process.cwd(), process.env.LATENTKIT_NATIVE);
    const { native, file } = loadFirst([broken, working!]);
    assert.equal(file, working);
    assert.equal(typeof native.isa(), "string");
  });

  it("refuses what the environment asks of it and it does not have", async () => {
    for (const isa of ["bogus", "AVX2", "avx2 "]) {
      const message = new RegExp(`^LATENTKIT_ISA: expected avx512, avx2 or baseline, received "${isa}"\\.$`);
      await refuses(() => checkEnvironment({ LATENTKIT_ISA: isa }), "usage.invalid", message);
    }
    for (const threads of ["0", "257", "-1", "two", "2.5", " 2"]) {
      const message = /^LATENTKIT_THREADS: expected a whole number from 1 to 256, received "/;
      await refuses(() => checkEnvironment({ LATENTKIT_THREADS: threads }), "usage.invalid", message);
    }
    for (const LATENTKIT_ISA of ["avx512", "avx2", "baseline", "", undefined]) checkEnvironment({ LATENTKIT_ISA });
    for (const LATENTKIT_THREADS of ["1", "256", ""]) checkEnvironment({ LATENTKIT_THREADS });
  });

  it("loads in a worker thread", async () => {
    const source = `
      import(${JSON.stringify(import.meta.resolve("#src/native/load.js"))}).then(({ loadNative }) =>
        require("node:worker_threads").parentPort.postMessage(loadNative().isa()));
    `;
    const worker = new Worker(source, { eval: true });
    const isa = await new Promise((resolve, reject) => worker.on("message", resolve).on("error", reject));
    assert.equal(isa, loadNative().isa());
  });
});
