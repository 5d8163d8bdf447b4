import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { filesIn, root } from "../../helpers/folders.js";

/** Functions that only tests in TypeScript call: those of adapters, with drivers of their own, and of PNG files. */
const CALLED_FROM_TYPESCRIPT = ["engine_adapters", "engine_png_inspect_frames", "engine_png_decode_frames"];

describe("C++ tests", () => {
  const folder = join(root, "test/native");
  const textOf = (part: RegExp) =>
    filesIn(folder)
      .filter((file) => part.test(file))
      .map((file) => readFileSync(join(folder, file), "utf8"))
      .join("\n");
  const header = (name: string) => readFileSync(join(root, "native/include", name), "utf8");

  it("call every function of engine.h", () => {
    const text = textOf(/^[^/]*_test\.cpp$|^png\//);
    const names = [...header("engine.h").matchAll(/^[a-z][\w ]*[ *](engine_\w+)\(/gm)].map(([, name]) => name!);
    assert.ok(names.includes("engine_scale") && names.includes("engine_shutdown"));
    assert.deepEqual(
      names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text)),
      CALLED_FROM_TYPESCRIPT,
    );
  });

  it("call every function of the CUDA table", () => {
    const text = textOf(/^cuda\//);
    const names = [...header("engine_cuda.h").matchAll(/^ {2}\w+ \(\*(\w+)\)\(/gm)].map(([, name]) => name!);
    assert.ok(names.includes("scale") && names.includes("png_filter"));
    assert.deepEqual(
      names.filter((name) => !new RegExp(`(cuda\\(\\)\\.|->)${name}\\b`).test(text)),
      [],
    );
  });
});
