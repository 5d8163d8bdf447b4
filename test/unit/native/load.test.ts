import assert from "node:assert/strict";
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { candidates, checkEnvironment, loadFirst, loadNative, packageFile, platformPackage } from "#src/native/load.js";
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

  it("passes over a broken build if the next file works", () => {
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

const MUSL = "7f1c-7f1d r-xp 0001 08:01 12 /lib/ld-musl-x86_64.so.1\n";
const LINKED_MUSL =
  "7f1c-7f1d r-xp 0001 08:01 12 /usr/lib/x86_64-linux-musl/libc.so\n7f1e-7f1f rw-p 0 00:00 0 [stack]\n";
const GLIBC = "7f1c-7f1d r-xp 0001 08:01 12 /usr/lib/x86_64-linux-gnu/libc.so.6\n";

describe("platformPackage", () => {
  it("names operating system and processor", () => {
    assert.equal(platformPackage({ platform: "darwin", arch: "arm64" }), "@latentkit/darwin-arm64");
    assert.equal(platformPackage({ platform: "win32", arch: "x64" }), "@latentkit/win32-x64");
  });

  it("tells musl from glibc by what the process has loaded", () => {
    assert.equal(platformPackage({ platform: "linux", arch: "x64" }, GLIBC), "@latentkit/linux-x64");
    assert.equal(platformPackage({ platform: "linux", arch: "x64" }, MUSL), "@latentkit/linuxmusl-x64");
    assert.equal(platformPackage({ platform: "linux", arch: "arm64" }, LINKED_MUSL), "@latentkit/linuxmusl-arm64");
    assert.equal(platformPackage({ platform: "linux", arch: "arm64" }, ""), "@latentkit/linux-arm64");
  });

  it("agrees with Node's own report on this machine", function () {
    if (process.platform !== "linux") this.skip();
    const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
    const musl = header.glibcVersionRuntime === undefined ? "musl" : "";
    assert.equal(platformPackage(), `@latentkit/linux${musl}-${process.arch}`);
  });
});

describe("packageFile", () => {
  const folder = temporaryFolder();

  it("finds a file of a package as Node does, also above the folder", () => {
    const package_ = join(folder(), "node_modules/@latentkit/linux-x64");
    mkdirSync(package_, { recursive: true });
    writeFileSync(join(package_, "latentkit.node"), "");
    const expected = join(realpathSync(package_), "latentkit.node");
    for (const root of [folder(), join(folder(), "node_modules/latentkit")])
      assert.equal(packageFile(root, "@latentkit/linux-x64", "latentkit.node"), expected);
  });

  it("is undefined if the package or the file is missing", () => {
    mkdirSync(join(folder(), "node_modules/@latentkit/linux-x64"), { recursive: true });
    assert.equal(packageFile(folder(), "@latentkit/linux-x64", "latentkit.node"), undefined);
    assert.equal(packageFile(folder(), "@latentkit/none", "latentkit.node"), undefined);
  });
});
