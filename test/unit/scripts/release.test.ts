import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, temporaryFolder } from "../../helpers/folders.js";

const script = (path: string): Promise<unknown> =>
  import(new URL(`../../../../scripts/release/${path}`, import.meta.url).href);

type Manifest = Record<string, unknown> & { name: string };

interface Packages {
  readonly PLATFORM_FILES: readonly string[];
  readonly MAIN_FILES: readonly string[];
  writePlatformPackages(options: { root: string; platform: string; binaries: string; folder: string }): string[];
  manifestOf(folder: string): Manifest;
}
interface Tarballs {
  checkPackage(manifest: Manifest, paths: readonly string[], bytes: number): void;
}
interface Platforms {
  ownPlatform(): string;
  toolchainOf(platform: string): string | undefined;
}

describe("scripts/release", () => {
  const folder = temporaryFolder();
  let packages: Packages;
  let tarballs: Tarballs;
  let platforms: Platforms;
  before(async () => {
    packages = (await script("packages.mjs")) as Packages;
    tarballs = (await script("tarballs.mjs")) as Tarballs;
    platforms = (await script("platforms.mjs")) as Platforms;
  });

  function write(platform: string, files: readonly string[]): Manifest[] {
    const binaries = folder();
    for (const file of files) writeFileSync(join(binaries, file), "binary");
    const written = packages.writePlatformPackages({ root, platform, binaries, folder: join(folder(), "stage") });
    for (const path of written) {
      for (const file of packages.PLATFORM_FILES) assert.ok(existsSync(join(path, file)), file);
    }
    return written.map((path) => packages.manifestOf(path));
  }

  it("says in a platform's manifest where npm may install it", () => {
    const [manifest, ...others] = write("linuxmusl-arm64", ["latentkit.node"]);
    assert.deepEqual(others, []);
    const { name, os, cpu, libc, version, scripts } = manifest!;
    assert.deepEqual(
      [name, os, cpu, libc, scripts],
      ["@latentkit/linuxmusl-arm64", ["linux"], ["arm64"], ["musl"], undefined],
    );
    assert.equal(version, packages.manifestOf(root).version);
    assert.equal(write("darwin-x64", ["latentkit.node"])[0]!.libc, undefined);
  });

  it("makes a package of the CUDA library where there is one", () => {
    const names = write("linux-x64", ["latentkit.node", "latentkit_cuda.so"]).map(({ name }) => name);
    assert.deepEqual(names, ["@latentkit/linux-x64", "@latentkit/linux-x64-cuda"]);
  });

  it("refuses a platform's package that is too large, lacks a licence, or runs a script", () => {
    const [manifest] = write("linux-x64", ["latentkit.node"]);
    const files = [...packages.PLATFORM_FILES, "latentkit.node"];
    tarballs.checkPackage(manifest!, files, 2_400_000);
    assert.throws(() => tarballs.checkPackage(manifest!, files, 2_500_000), /expected less than 2500000 bytes/);
    assert.throws(() => tarballs.checkPackage(manifest!, files.slice(1), 1), /files of @latentkit\/linux-x64/);
    const scripted = { ...manifest!, scripts: { postinstall: "node x.mjs" } };
    assert.throws(() => tarballs.checkPackage(scripted, files, 1), /has a script postinstall/);
  });

  it("refuses a package of latentkit without types, with a binary, or as the checkout has it", () => {
    const checkout = packages.manifestOf(root);
    const { private: _private, ...manifest } = checkout as Manifest & { exports: Record<string, { types?: string }> };
    const types = Object.values(manifest.exports).flatMap((entry) => (entry.types ? [entry.types.slice(2)] : []));
    const files = [...packages.MAIN_FILES, ...types];
    tarballs.checkPackage(manifest, files, 1);
    for (const path of new Set(files)) {
      const others = files.filter((other) => other !== path);
      assert.throws(() => tarballs.checkPackage(manifest, others, 1), /is missing from latentkit/);
    }
    assert.throws(() => tarballs.checkPackage(manifest, [...files, "build/latentkit.node"], 1), /do not belong into/);
    assert.throws(() => tarballs.checkPackage(checkout, files, 1), /is private/);
  });

  it("says what cannot be built here", () => {
    assert.equal(platforms.toolchainOf(platforms.ownPlatform()), undefined);
    assert.throws(() => platforms.toolchainOf("sunos-x64"), /^Error: Platform sunos-x64 cannot be built on /);
  });

  it("writes the names of platforms that the loader looks for", async () => {
    const { platformPackage } = await import("#src/native/platform-package.js");
    assert.equal(`@latentkit/${platforms.ownPlatform()}`, platformPackage());
    const page = readFileSync(join(root, "docs/platforms.md"), "utf8");
    const { PLATFORMS } = (await script("platforms.mjs")) as { PLATFORMS: Record<string, object> };
    for (const name of Object.keys(PLATFORMS)) assert.ok(page.includes(`\`@latentkit/${name}\``), name);
  });
});
