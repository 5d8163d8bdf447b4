import assert from "node:assert/strict";
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageFile, platformPackage } from "#src/native/platform-package.js";
import { temporaryFolder } from "../../helpers/folders.js";

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

  it("is undefined where the package or the file is missing", () => {
    mkdirSync(join(folder(), "node_modules/@latentkit/linux-x64"), { recursive: true });
    assert.equal(packageFile(folder(), "@latentkit/linux-x64", "latentkit.node"), undefined);
    assert.equal(packageFile(folder(), "@latentkit/none", "latentkit.node"), undefined);
  });
});
