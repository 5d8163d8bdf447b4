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

  it("finds the decisions that comments cite", async () => {
    const { brokenCitations, citedIn, headlines } = (await import(
      pathToFileURL(join(root, "scripts/docs/decisions.mjs")).href
    )) as {
      brokenCitations(known?: ReadonlySet<string>): string[];
      citedIn(text: string): string[];
      headlines(page?: string): Set<string>;
    };
    assert.deepEqual(brokenCitations(), []);
    const known = headlines("**A is B.** Since C.\n\n**D's E is F.** G.\n");
    const cited = citedIn("  // decisions: A is B; D is F\n# decisions: D's E is F\n");
    assert.deepEqual(
      cited.filter((headline) => !known.has(headline)),
      ["D is F"],
    );
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
