import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { unknownVariables } from "#src/render/config/load-config.js";
import { filesIn, root } from "../helpers/folders.js";

/** Names that a source reads from the environment, in TypeScript and in C++. */
const namesIn = (text: string): string[] =>
  [...text.matchAll(/(?:\.|[({]\s?|getenv\(")(LATENTKIT_[A-Z_]+)/g)].map(([, name]) => name!);

describe("environment variables", () => {
  it("that the sources read are none that a warning says set nothing", () => {
    const names = ["src", "native"].flatMap((folder) =>
      filesIn(join(root, folder))
        .filter((file) => /\.(ts|cpp|h|cu)$/.test(file))
        .flatMap((file) => namesIn(readFileSync(join(root, folder, file), "utf8"))),
    );
    assert.ok(names.includes("LATENTKIT_ISA"), "the search finds what the native core reads");
    assert.ok(names.includes("LATENTKIT_NATIVE"), "the search finds what the loader reads");
    assert.deepEqual(unknownVariables(Object.fromEntries(names.map((name) => [name, "x"]))), []);
  });
});
