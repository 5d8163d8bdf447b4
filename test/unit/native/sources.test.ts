import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { filesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { skip } from "../../helpers/skip.js";

describe("CMakeLists.txt", () => {
  const folder = temporaryFolder();

  it("links its modules in a folder with blanks, a comma and an umlaut", function () {
    if (process.platform !== "linux") skip(this, "the linker's flags hold paths on Linux");
    const place = join(folder(), "a folder, with Ümlaut");
    const [source, build] = [join(place, "latentkit"), join(place, "build")];
    mkdirSync(place);
    symlinkSync(root, source);
    const options = ["-DCMAKE_BUILD_TYPE=Release", "-DLATENTKIT_CUDA=OFF"];
    execFileSync("cmake", ["-S", source, "-B", build, "-G", "Unix Makefiles", ...options], { stdio: "pipe" });
    // the real commands, with nothing in what they link
    const empty = join(place, "empty.o");
    execFileSync("c++", ["-c", "-fPIC", "-x", "c++", "/dev/null", "-o", empty]);
    for (const [at, target] of [
      ["native/addon", "latentkit"],
      ["test/native/cuda/fake", "latentkit_cuda_for_tests"],
    ] as const) {
      const cwd = join(build, at);
      const command = readFileSync(join(cwd, `CMakeFiles/${target}.dir/link.txt`), "utf8");
      assert.ok(command.includes(place), command);
      for (const [input] of command.matchAll(/\S+\.o\b/g)) {
        mkdirSync(dirname(join(cwd, input)), { recursive: true });
        copyFileSync(empty, join(cwd, input));
      }
      for (const [archive] of command.matchAll(/\S+\.a\b/g)) execFileSync("ar", ["rcs", archive], { cwd });
      for (const [, output] of command.matchAll(/ -o (\S+)/g))
        mkdirSync(dirname(join(cwd, output!)), { recursive: true });
      const linked = spawnSync("sh", ["-c", command], { cwd, encoding: "utf8" });
      assert.equal(linked.status, 0, `${command}${linked.stderr}`);
    }
  });
});

describe("scripts/bindings-gyp.mjs", () => {
  it("describes a target for every source", function () {
    if (process.platform !== "linux") skip(this, "the targets are read as they are on Linux");
    const text = execFileSync(process.execPath, ["scripts/bindings-gyp.mjs"], { encoding: "utf8" });
    const { targets } = JSON.parse(text.replace(/^#.*$/gm, "")) as { targets: { sources: string[] }[] };
    const named = new Set(targets.flatMap(({ sources }) => sources));
    const folder = join(root, "native");
    const ours = filesIn(folder).filter((file) => file.endsWith(".cpp") && !file.startsWith("third_party/"));
    assert.ok(ours.includes("core/kernels/noise.cpp"));
    assert.deepEqual(
      ours.map((file) => `native/${file}`).filter((file) => !named.has(file)),
      ["native/addon/windows.cpp"],
    );
  });
});
