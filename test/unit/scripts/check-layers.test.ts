import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

type Script = { checkLayers(root: string): string[] };
const script = new URL("../../../../scripts/check-layers.mjs", import.meta.url);

describe("scripts/check-layers", () => {
  let root: string;
  let check: (files: Record<string, string>) => string[];
  before(async () => {
    const { checkLayers } = (await import(script.href)) as Script;
    check = (files) => {
      root = mkdtempSync(join(tmpdir(), "latentkit-layers-"));
      for (const [path, text] of Object.entries({ "src/errors.ts": "", "native/core/a.cpp": "", ...files })) {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), text);
      }
      const found = checkLayers(root);
      rmSync(root, { recursive: true });
      return found;
    };
  });

  it("passes this repository", async () => {
    const { checkLayers } = (await import(script.href)) as Script;
    assert.deepEqual(checkLayers(new URL("../../../../", import.meta.url).pathname), []);
  });

  it("lets a file import its own layer and lower ones", () => {
    const text =
      'import { a } from "./b.js";\nimport type { T } from "../tensor/t.js";\nexport { e } from "../errors.js";\n';
    assert.deepEqual(check({ "src/io/a.ts": text }), []);
    assert.deepEqual(check({ "src/graph/a.ts": 'import { x } from "../nodes/values.js";\n' }), []);
  });

  it("names each import that looks up or sideways", () => {
    assert.deepEqual(check({ "src/tensor/a.ts": 'import { r } from "../render/r.js";\n' }), [
      "src/tensor/a.ts: tensor may not import render/r.ts.",
    ]);
    assert.deepEqual(check({ "src/graph/a.ts": 'const m = await import("../nodes/ext/if.js");\n' }), [
      "src/graph/a.ts: graph may not import nodes/ext/if.ts.",
    ]);
    assert.equal(check({ "src/cli/a.ts": 'import "../service/s.js";\n' }).length, 1);
    assert.equal(check({ "src/stray/a.ts": "" }).length, 1);
    assert.equal(check({ "src/io/a.ts": "let count = 0;\n" }).length, 1);
  });

  it("keeps the native core free of Node and CUDA, and its inside to itself", () => {
    assert.equal(check({ "native/core/a.cpp": "#include <napi.h>\n#include <cuda_runtime.h>\n" }).length, 2);
    assert.equal(check({ "native/addon/a.cpp": '#include "../core/parallel.h"\n' }).length, 1);
    assert.deepEqual(check({ "native/addon/a.cpp": '#include <napi.h>\n#include "engine.h"\n' }), []);
    assert.equal(check({ "native/cuda/a.cpp": '#include "core/parallel.h"\n' }).length, 1);
    assert.equal(check({ "native/shared/a.h": '#include "core/parallel.h"\n#include <cuda.h>\n' }).length, 2);
    assert.deepEqual(check({ "native/cuda/a.cpp": '#include "shared/checks.h"\n#include "engine_cuda.h"\n' }), []);
  });
});
