import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, temporaryFolder } from "../../helpers/folders.js";

interface Script {
  checkLayers(root: string, tables?: object): { rule: string; text: string }[];
}

const TABLES = {
  FLOORS: {
    "": ["errors", "io/", "nodes/", "graph/", "cli/ service/", "index"],
    graph: ["*", "parsing/", "running/", "face"],
  },
  NARROW: [{ from: "graph/", to: "nodes/", only: ["nodes/values.ts"] }],
  FACES: { "graph/running": "run.ts" },
  MAY_HOLD_STATE: ["io/cache.ts"],
  ENTRIES: ["index.ts"],
};

describe("scripts/check-layers", () => {
  const folder = temporaryFolder();
  let script: Script;
  before(async () => {
    script = (await import(pathToFileURL(join(root, "scripts/check-layers.mjs")).href)) as Script;
  });

  /** Sentences of one rule on a tree of these files. */
  function check(rule: string, files: Record<string, string>): string[] {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder(), path)), { recursive: true });
      writeFileSync(join(folder(), path), text);
    }
    const findings = script.checkLayers(folder(), TABLES);
    return findings.filter((finding) => finding.rule === rule).map(({ text }) => text);
  }

  it("passes this repository", () => {
    assert.deepEqual(script.checkLayers(root), []);
  });

  it("lets a file import its own layer and lower ones", () => {
    const text =
      'import { a } from "./b.js";\nimport type { T } from "../io/t.js";\nexport { e } from "../errors.js";\n';
    assert.deepEqual(check("layer", { "src/nodes/a.ts": text }), []);
  });

  it("refuses an import of a higher layer, or of one beside it, of types too", () => {
    const text = 'import type { G } from "../graph/g.js";\nconst m = await import("../index.js");\n';
    assert.deepEqual(check("layer", { "src/io/a.ts": text, "src/cli/b.ts": 'import "../service/s.js";\n' }), [
      "src/cli/b.ts may not import service/s.ts: service/ is not below cli/.",
      "src/io/a.ts may not import graph/g.ts: graph/ is not below io/.",
      "src/io/a.ts may not import index.ts: index is not below io/.",
    ]);
  });

  it("refuses an import of a higher floor in a layer, of types by its own rule", () => {
    const files = {
      "src/graph/loose.ts": 'import { r } from "./parsing/p.js";\n',
      "src/graph/parsing/p.ts":
        'import { type A, b } from "../running/run.js";\nimport { type C } from "../running/run.js";\nimport "../loose.js";\n',
      "src/graph/running/run.ts": 'import "../face.js";\nimport "../parsing/p.js";\n',
      "src/graph/face.ts": 'import "./running/run.js";\nimport "./loose.js";\n',
    };
    assert.deepEqual(check("floor", files), [
      "src/graph/loose.ts may not import graph/parsing/p.ts: parsing/ is not below loose.",
      "src/graph/parsing/p.ts may not import graph/running/run.ts: running/ is not below parsing/.",
      "src/graph/running/run.ts may not import graph/face.ts: face is not below running/.",
    ]);
    assert.equal(check("type-floor", files).length, 1);
  });

  it("refuses a layer or a folder without a floor", () => {
    assert.deepEqual(check("layer", { "src/stray/a.ts": "", "src/loose.ts": "" }), [
      "src/loose has no floor in scripts/layers/floors.mjs.",
      "src/stray/ has no floor in scripts/layers/floors.mjs.",
    ]);
    assert.deepEqual(check("floor", { "src/graph/new/a.ts": "", "src/io/png/a.ts": "" }), [
      "src/graph/new/ has no floor in scripts/layers/floors.mjs.",
      "src/io/png/ has no floor in scripts/layers/floors.mjs.",
    ]);
  });

  it("refuses entries of its tables that match no file", () => {
    const missing = (...gone: string[]) => {
      const all = [
        "errors",
        "io/cache",
        "nodes/values",
        "graph/face",
        "graph/loose",
        "graph/parsing/p",
        "graph/running/run",
      ];
      const files = [...all, "cli/a", "service/a", "index"].filter((file) => !gone.includes(file));
      rmSync(join(folder(), "src"), { recursive: true, force: true });
      return check("entry", Object.fromEntries(files.map((file) => [`src/${file}.ts`, ""])));
    };
    assert.deepEqual(missing(), []);
    assert.deepEqual(missing("errors", "service/a", "graph/face", "graph/parsing/p"), [
      'scripts/layers/floors.mjs: FLOORS[""], "errors" matches no file of src.',
      'scripts/layers/floors.mjs: FLOORS[""], "service/" matches no file of src.',
      'scripts/layers/floors.mjs: FLOORS["graph"], "parsing/" matches no file of src.',
      'scripts/layers/floors.mjs: FLOORS["graph"], "face" matches no file of src.',
    ]);
    assert.deepEqual(missing("graph/loose", "io/cache", "nodes/values", "graph/running/run", "index"), [
      'scripts/layers/floors.mjs: FLOORS[""], "io/" matches no file of src.',
      'scripts/layers/floors.mjs: FLOORS[""], "nodes/" matches no file of src.',
      'scripts/layers/floors.mjs: FLOORS[""], "index" matches no file of src.',
      'scripts/layers/floors.mjs: FLOORS["graph"], "*" matches no file of src.',
      'scripts/layers/floors.mjs: FLOORS["graph"], "running/" matches no file of src.',
      'scripts/layers/floors.mjs: NARROW, "nodes/" matches no file of src.',
      'scripts/layers/floors.mjs: NARROW, "nodes/values.ts" matches no file of src.',
      'scripts/layers/floors.mjs: FACES, "graph/running/run.ts" matches no file of src.',
      'scripts/layers/floors.mjs: MAY_HOLD_STATE, "io/cache.ts" matches no file of src.',
      'scripts/layers/floors.mjs: ENTRIES, "index.ts" matches no file of src.',
    ]);
  });

  it("lets a layer with a narrow door use what it names alone", () => {
    const text = 'import { x } from "../nodes/values.js";\nimport { y } from "../nodes/ext/if.js";\n';
    assert.deepEqual(check("narrow", { "src/graph/a.ts": text }), [
      "src/graph/a.ts may not import nodes/ext/if.ts, only nodes/values.ts.",
    ]);
  });

  it("refuses the inside of a room to those outside", () => {
    const files = {
      "src/cli/a.ts": 'import { r } from "../graph/running/run.js";\nimport { s } from "../graph/running/step.js";\n',
      "src/graph/running/run.ts": 'import { s } from "./step.js";\n',
    };
    assert.deepEqual(check("face", files), [
      "src/cli/a.ts may not import graph/running/step.ts, only graph/running/run.ts.",
    ]);
  });

  it("reports circles of values and circles closed by types separately", () => {
    const files = {
      "src/io/a.ts": 'import { b } from "./b.js";\n',
      "src/io/b.ts": 'import {\n  c,\n  type D,\n} from "./c.js";\n',
      "src/io/c.ts": 'export * from "./a.js";\n',
      "src/io/d.ts": 'import { e } from "./e.js";\n',
      "src/io/e.ts": 'import type { d } from "./d.js";\n',
    };
    assert.deepEqual(check("circle", files), ["Circle of imports: io/a.ts → io/b.ts → io/c.ts."]);
    assert.deepEqual(check("type-circle", files), ["Circle of types: io/d.ts → io/e.ts."]);
  });

  it("refuses variables and growing collections of a module", () => {
    const text =
      "let count = 0;\nconst seen: Map<string, number> = new Map<string, number>();\nconst NONE: ReadonlySet<string> = new Set();\n";
    assert.deepEqual(check("state", { "src/io/a.ts": text, "src/io/cache.ts": text }), [
      'src/io/a.ts: "count" is module state.',
      'src/io/a.ts: "seen" is module state.',
    ]);
  });

  it("refuses an export that only tests use, unless it is @internal", () => {
    const files = {
      "src/io/a.ts":
        "export const used = 1;\nexport function unused() {}\n/** For tests. @internal */\nexport class Inside {}\n/** @internal */\nconst x = 1;\nexport async function later() {}\nexport const program = 1;\n",
      "src/io/b.ts": 'import { type Other, used as one } from "./a.js";\n',
      "bin/run.mjs": 'import { program } from "../dist/io/a.js";\n',
      "src/index.ts": "export const all = 1;\n",
    };
    assert.deepEqual(check("export", files), [
      'src/io/a.ts: nothing but tests imports "unused".',
      'src/io/a.ts: nothing but tests imports "later".',
    ]);
  });

  it("refuses a doc comment that starts with What, Of, Who or That", () => {
    const text = "/** What is read. */\nconst a = 1;\n/**\n * Of two the first.\n */\nconst b = 1;\n/** Whatever. */\n";
    assert.equal(check("comment", { "src/io/a.ts": text, "scripts/b.mjs": "/** Number of these. */\n" }).length, 2);
  });

  it("refuses elementary functions whose bits an engine chooses", () => {
    const inexact = "const a = Math.exp(1) + x ** 3 + 0.2 ** x;\nconst { log } = Math;\nb.map(Math.cos);\nc **= 2;\n";
    const exact =
      "const a = Math.sqrt(2) * 2 ** 20 * Math.PI;\nconst b = f(2n ** 64n, [2 ** x]);\n/** Math.max of it. */\n";
    const found = check("elementary", {
      "src/io/a.ts": inexact,
      "src/io/b.ts": exact,
      "src/native/elementary.ts": inexact,
    });
    const uses = ["Math.exp", "x **", "0.2 **", "Math", "Math.cos", "c **="];
    assert.deepEqual(
      found,
      uses.map(
        (use) => `src/io/a.ts: "${use}" differs between engines; native/elementary.ts has the functions for it.`,
      ),
    );
  });

  it("keeps the native core free of Node and CUDA, and its inside to itself", () => {
    const files = {
      "native/core/a.cpp": "#include <napi.h>\n#include <cuda_runtime.h>\n",
      "native/addon/a.cpp": '#include "../core/parallel.h"\n#include <napi.h>\n#include "engine.h"\n',
      "native/cuda/a.cpp": '#include "core/parallel.h"\n#include "shared/checks.h"\n',
      "native/shared/a.h": '#include "core/parallel.h"\n#include <cuda.h>\n',
    };
    assert.deepEqual(check("native", files), [
      "native/addon/a.cpp: addon may not include ../core/parallel.h.",
      "native/core/a.cpp: core may not include napi.h.",
      "native/core/a.cpp: core may not include cuda_runtime.h.",
      "native/cuda/a.cpp: cuda may not include core/parallel.h.",
      "native/shared/a.h: shared may not include core/parallel.h.",
      "native/shared/a.h: shared may not include cuda.h.",
    ]);
  });
});
