// The package as its users have it: installed beside its dependencies, required, compiled strictly, bundled.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type BuildOptions, build } from "esbuild";
import { root } from "../helpers/folders.js";

const PROGRAM = `
import { LatentkitError, randn, registry, render, type RenderOptions, Tensor } from "latentkit";
import { createGraphAgent, createHookService, createMemoryStore, type HookService } from "latentkit/hooks";
import { createLogger, createServer, startService } from "latentkit/service";
const options: RenderOptions = { set: { "1.value": 1 } };
const hooks: HookService = createHookService({ agent: async () => ({ response: "" }), store: createMemoryStore(), config: {} });
export const parts = [randn([1], { seed: 1n }), registry, render, options, Tensor, LatentkitError, hooks.router] as const;
export const services = [createGraphAgent, createLogger, createServer, startService] as const;
`;

const SENTENCE =
  "latentkit cannot be bundled, because it loads a native module and worker threads from its own folder: mark it external";

describe("a project that uses the package", () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-consumer-"));
    const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const modules = join(folder, "node_modules");
    // copied: through a link the compiler would see the types that only a checkout has
    for (const part of ["package.json", "dist"])
      cpSync(join(root, part), join(modules, "latentkit", part), { recursive: true });
    link(join(root, "build/Release"), join(modules, "latentkit/build/Release"));
    for (const name of [...Object.keys(dependencies), "@types/node"])
      link(join(root, "node_modules", name), join(modules, name));
    writeFileSync(join(folder, "program.ts"), PROGRAM);
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  });

  after(() => rmSync(folder, { recursive: true }));

  it("gets one instance of it from require and import", () => {
    const compare = `import(name).then((imported) => console.log(imported.LatentkitError === require(name).LatentkitError))`;
    for (const name of ["latentkit", "latentkit/hooks", "latentkit/service"]) {
      const source = `const name = "${name}"; require(name); ${compare}`;
      assert.equal(succeed(process.execPath, ["--input-type=commonjs", "-e", source]), "true\n");
    }
  });

  for (const settings of [
    { module: "node16", moduleResolution: "node16" },
    { module: "esnext", moduleResolution: "bundler" },
  ]) {
    it(`compiles strictly with moduleResolution ${settings.moduleResolution} @long`, () => {
      const strict = { strict: true, skipLibCheck: false, verbatimModuleSyntax: true };
      const compilerOptions = { ...settings, ...strict, target: "es2022", types: ["node"], noEmit: true };
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
      succeed(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", folder]);
    });
  }

  it("bundles around it where it is external", async () => {
    const outfile = await bundle({ packages: "external" });
    assert.equal(succeed(process.execPath, [outfile]), "");
  });

  for (const format of ["esm", "cjs"] as const) {
    it(`is told not to bundle it, by the first import of an ${format} bundle`, async () => {
      const outfile = await bundle({ format });
      const { status, stderr } = spawnSync(process.execPath, [outfile], { encoding: "utf8" });
      assert.equal(status, 1);
      assert.equal(stderr.split(SENTENCE).length - 1, 1, stderr);
      assert.doesNotMatch(stderr, /ENOENT/);
    });
  }

  async function bundle(options: BuildOptions): Promise<string> {
    const outfile = join(folder, `out/bundle.${options.format === "cjs" ? "cjs" : "mjs"}`);
    const defaults: BuildOptions = { platform: "node", format: "esm", bundle: true, logLevel: "silent" };
    await build({ ...defaults, ...options, entryPoints: [join(folder, "program.ts")], outfile });
    return outfile;
  }

  function succeed(program: string, args: readonly string[]): string {
    const ran = spawnSync(program, args, { cwd: folder, encoding: "utf8" });
    assert.equal(ran.status, 0, `${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  }
});

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}
