import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { root, temporaryFolder } from "../../helpers/folders.js";
import { skip } from "../../helpers/skip.js";

const script = (path: string): Promise<unknown> =>
  import(new URL(`../../../../scripts/release/${path}`, import.meta.url).href);

type Manifest = Record<string, unknown> & { name: string };

interface Imports {
  readSources(folder: string, pattern: RegExp): { readonly file: string }[];
  arrowsOf(source: { readonly file: string }): { readonly to: string }[];
}
interface Packages {
  platformFiles(platform: string): string[];
  readonly MAIN_FILES: readonly string[];
  writePlatformPackages(options: { root: string; platform: string; binaries: string; folder: string }): string[];
  manifestOf(folder: string): Manifest;
}
interface Tarballs {
  checkPackage(manifest: Manifest, paths: readonly string[], bytes: number): void;
}
interface ThirdParty {
  readonly name: string;
  readonly text: string;
}
interface ThirdParties {
  readonly THIRD_PARTY: readonly ThirdParty[];
  packedText(part: ThirdParty): string;
}
interface BillOfMaterials {
  billOfMaterials(
    root: string,
    packages: readonly string[],
  ): {
    components: { name: string; "bom-ref": string }[];
    dependencies: { ref: string; dependsOn: string[] }[];
  };
}
interface Binaries {
  checkBinary(platform: string, file: string): void;
}
interface Matrix {
  readonly include?: { platforms: string }[];
  readonly system?: { platform: string }[];
}
interface Workflow {
  readonly jobs: Record<string, { strategy?: { matrix: Matrix }; steps: { run?: string }[] }>;
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
      for (const file of packages.platformFiles(platform)) assert.ok(existsSync(join(path, file)), file);
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

  it("makes a package of the CUDA library if there is one", () => {
    const [core, cuda] = write("linux-x64", ["latentkit.node", "latentkit_cuda.so"]);
    assert.deepEqual([core!.name, cuda!.name], ["@latentkit/linux-x64", "@latentkit/linux-x64-cuda"]);
    // koffi itself has an install script
    assert.deepEqual([core!.dependencies, Object.keys(cuda!.dependencies!)], [undefined, ["@koromix/koffi-linux-x64"]]);
  });

  it("refuses a platform's package that is too large, lacks a licence, or runs a script", () => {
    const [manifest] = write("linux-x64", ["latentkit.node"]);
    const files = [...packages.platformFiles("linux-x64"), "latentkit.node"];
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

  it("lists what others wrote, each with its licence, in the packages and in the bill of materials", async () => {
    const { THIRD_PARTY, packedText } = (await script("bill-of-materials.mjs")) as ThirdParties;
    const { billOfMaterials } = (await script("bill-of-materials.mjs")) as BillOfMaterials;
    const { components, dependencies } = billOfMaterials(root, ["@latentkit/linux-x64"]);
    const listed = components.map(({ name }) => name);
    for (const part of THIRD_PARTY) {
      assert.ok(existsSync(join(root, part.text)), part.text);
      assert.ok(packages.MAIN_FILES.includes(packedText(part)), part.name);
      assert.ok(listed.includes(part.name), part.name);
    }
    const { dependencies: installed } = packages.manifestOf(root) as Manifest & { dependencies: object };
    for (const name of [...Object.keys(installed), "@latentkit/linux-x64"]) assert.ok(listed.includes(name), name);
    assert.ok(!listed.includes("mocha"), "a tool of the build is listed");
    const refs = new Set(components.map((component) => component["bom-ref"]));
    const own = dependencies.find(({ ref }) => ref.startsWith("latentkit@"))!;
    assert.deepEqual(
      own.dependsOn.filter((ref) => !refs.has(ref)),
      [],
    );
  });

  it("is signed for the repository that builds it, and for none elsewhere", () => {
    const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
    try {
      Object.assign(process.env, { GITHUB_SERVER_URL: "https://git.example", GITHUB_REPOSITORY: "us/latentkit" });
      const [signed] = write("linux-x64", ["latentkit.node"]);
      assert.deepEqual(signed!.publishConfig, { access: "public", provenance: true });
      assert.deepEqual(signed!.repository, { type: "git", url: "git+https://git.example/us/latentkit.git" });
      delete process.env.GITHUB_REPOSITORY;
      assert.equal(write("linux-x64", ["latentkit.node"])[0]!.repository, undefined);
    } finally {
      for (const [name, value] of Object.entries({ GITHUB_SERVER_URL, GITHUB_REPOSITORY }))
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
    }
  });

  it("bundles every program of a thread or process, and what is required when it is needed", async () => {
    const { programsOf } = (await script("bundle.mjs")) as { programsOf(dist: string): string[] };
    const programs = programsOf(join(root, "dist"));
    for (const name of programs) assert.ok(existsSync(join(root, "dist", name)), name);
    const { arrowsOf, readSources } = (await script("../layers/imports.mjs")) as Imports;
    const { ENTRIES } = (await script("../layers/floors.mjs")) as { readonly ENTRIES: readonly string[] };
    // bin imports the command line, which finds commands by their names; browsers load the page
    const isFound = (file: string) => /^(cli\/main\.ts|cli\/commands\/|service\/web\/page\/)/.test(file);
    const sources = readSources(join(root, "src"), /(?<!\.d)\.ts$/);
    const imported = new Set([...sources.flatMap(arrowsOf).map(({ to }) => to), ...ENTRIES]);
    const loaded = sources.map(({ file }) => file).filter((file) => !imported.has(file) && !isFound(file));
    assert.ok(loaded.length >= 5, String(loaded));
    assert.deepEqual(
      loaded.filter((file) => !programs.includes(file.replace(/\.ts$/, ".js"))),
      [],
    );
  });

  it("refuses a binary that needs a library its platform lacks", async function () {
    if (process.platform !== "linux") skip(this, "the core is a file of Linux there alone");
    const { checkBinary } = (await script("binaries.mjs")) as Binaries;
    const core = join(root, "build/Release/latentkit.node");
    const other = platforms.ownPlatform().startsWith("linuxmusl") ? "linux-x64" : "linuxmusl-x64";
    assert.throws(() => checkBinary(other, core), /libraries that .* needs and linux\S* may not have/);
  });

  it("has a CI file that builds and tries each platform, with scripts that exist", async () => {
    const { PLATFORMS } = (await script("platforms.mjs")) as { PLATFORMS: Record<string, object> };
    const { scripts } = packages.manifestOf(root) as Manifest & { scripts: Record<string, string> };
    const [release, test] = ["release", "test"].map((name) =>
      parse(readFileSync(join(root, `.github/workflows/${name}.yml`), "utf8")),
    ) as [Workflow, Workflow];
    const built = release.jobs.build!.strategy!.matrix.include!.flatMap((entry) => entry.platforms.split(" "));
    const tried = release.jobs.try!.strategy!.matrix.system!.map(({ platform }) => platform);
    assert.deepEqual(built.sort(), Object.keys(PLATFORMS).sort());
    assert.deepEqual(tried.sort(), Object.keys(PLATFORMS).sort());
    const commands = [release, test].flatMap(({ jobs }) => Object.values(jobs).flatMap(({ steps }) => steps));
    const text = commands.map(({ run = "" }) => run).join("\n");
    for (const [path] of text.matchAll(/scripts\/[\w/.-]+/g)) assert.ok(existsSync(join(root, path)), path);
    for (const [, name] of text.matchAll(/npm run (\w+)/g)) assert.ok(scripts[name!], name);
  });

  it("says what cannot be built here", () => {
    assert.equal(platforms.toolchainOf(platforms.ownPlatform()), undefined);
    assert.throws(() => platforms.toolchainOf("sunos-x64"), /^Error: Platform sunos-x64 cannot be built on /);
  });

  it("writes the names of platforms that the loader looks for", async () => {
    const { platformPackage } = await import("#src/native/load.js");
    assert.equal(`@latentkit/${platforms.ownPlatform()}`, platformPackage());
    const page = readFileSync(join(root, "docs/platforms.md"), "utf8");
    const { PLATFORMS } = (await script("platforms.mjs")) as { PLATFORMS: Record<string, object> };
    for (const name of Object.keys(PLATFORMS)) assert.ok(page.includes(`\`@latentkit/${name}\``), name);
  });
});
