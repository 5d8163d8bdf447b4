import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ERROR_CODES } from "#src/base/errors.js";
import { root } from "../../helpers/folders.js";
import { pages as allPages, isGenerated } from "../../helpers/process/docs.js";

describe("scripts/docs.mjs", () => {
  let generated: Map<string, string>;
  before(async () => {
    const { generatePages } = (await import(pathToFileURL(join(root, "scripts/docs.mjs")).href)) as {
      generatePages(): Promise<Map<string, string>>;
    };
    generated = await generatePages();
  });

  it("has written every generated page; run npm run docs if this fails", () => {
    const stale = [...generated].filter(([path, text]) => {
      const file = join(root, path);
      return !existsSync(file) || readFileSync(file, "utf8") !== text;
    });
    assert.deepEqual(
      stale.map(([path]) => path),
      [],
    );
  });

  it("knows every page that says it is generated", () => {
    const marked = [...allPages()].filter(([, text]) => isGenerated(text)).map(([path]) => path);
    const whole = [...generated].filter(([, text]) => isGenerated(text)).map(([path]) => path);
    assert.deepEqual(marked.sort(), whole.sort());
  });

  it("numbers the decisions from 1 without gaps, each once", () => {
    const numbers = [...generated.get("docs/decisions.md")!.matchAll(/^(\d+)\. /gm)].map(([, number]) =>
      Number(number),
    );
    const sorted = numbers.toSorted((a, b) => a - b);
    assert.deepEqual(
      sorted,
      sorted.map((_, index) => index + 1),
    );
    assert.ok(numbers.length > 190);
  });

  it("documents every value that the entries export", async () => {
    const text = generated.get("docs/api.md")!;
    for (const entry of ["latentkit", "latentkit/hooks", "latentkit/service"]) {
      const names = Object.keys((await import(entry)) as object);
      assert.ok(names.length > 2);
      assert.deepEqual(
        names.filter((name) => !text.includes(`\n### ${name}\n`) && !text.includes(`\n| \`${name}\` |`)),
        [],
        entry,
      );
    }
  });

  it("shows neither private nor internal members", () => {
    const text = generated.get("docs/api.md")!;
    assert.match(text, /\nclass Tensor \{/);
    assert.doesNotMatch(text, /@internal|^ +(private |#private|static #)/m);
  });

  it("has a row for each error code", () => {
    const rows = generated.get("docs/errors.md")!;
    assert.deepEqual(
      Object.keys(ERROR_CODES).filter((code) => !rows.includes(`| \`${code}\` |`)),
      [],
    );
  });
});
