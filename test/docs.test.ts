import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "./helpers/folders.js";
import { PageRunner } from "./helpers/page-runner.js";
import { blocksOf, isGenerated, pages } from "./helpers/process/docs.js";

/** The only reasons for a block not to run here; `<!-- not run: REASON -->` stands above it. */
const REASONS = [
  "installs from a registry",
  "runs the tests",
  "needs a CUDA compiler",
  "needs Docker",
  "needs Electron",
  "needs a checkpoint",
  "needs a PostgreSQL server",
  "needs root",
  "takes minutes",
];
const DIRECTIVES = ["exit", "file", "in", "not run"];

/** Pages that every run of the tests runs; npm run test:long runs the others. */
const QUICK = /^(README|CONTRIBUTING|docs\/batch|docs\/hooks.*)\.md$/;

/** The page whose blocks go into the sources: scripts/check-adding.mjs runs it. */
const ADDING = "docs/adding.md";
/** The generated page with examples; its blocks of TypeScript are declarations. */
const API = "docs/api.md";

const texts = pages();
/** The test of `npm run docs` compares generated pages with the sources. */
const written = [...texts].filter(([page, text]) => (page === API || !isGenerated(text)) && page !== ADDING);

for (const [page, text] of written) {
  const blocks = blocksOf(text).filter(({ language }) => page !== API || language !== "ts");
  if (blocks.length === 0) continue;
  describe(QUICK.test(page) ? page : `${page} @long`, () => {
    let folder: string;
    let runner: PageRunner;
    before(() => {
      folder = mkdtempSync(join(tmpdir(), "latentkit-docs-"));
      runner = new PageRunner(folder);
    });
    after(async () => {
      await runner.close();
      rmSync(folder, { recursive: true, force: true });
    });

    for (const [index, block] of blocks.entries()) {
      const { language, code, line, directives } = block;
      if (language === "diagram" || language === "mermaid") continue;
      const reason = directives["not run"];
      const title = code.split("\n").find((text) => text !== "" && !text.startsWith("import")) ?? "";
      const name = `line ${line}, ${language}: ${title.trim().slice(0, 60)}`;
      if (reason !== undefined) {
        it(`${name} has a reason not to run`, () => assert.ok(REASONS.includes(reason), reason));
        continue;
      }
      it(name, async () => {
        assert.deepEqual(
          Object.keys(directives).filter((key) => !DIRECTIVES.includes(key)),
          [],
        );
        await runner.run(block);
        const { file } = directives;
        // a file that no later block of the page mentions would not be tested at all
        if (file === undefined || file.startsWith(".github/")) return;
        assert.ok(
          blocks.slice(index + 1).some((later) => later.code.includes(file)),
          `nothing uses ${file}`,
        );
      });
    }
  });
}

describe("the pages", () => {
  it("link only to files and headings that exist", () => {
    const broken = [...texts].flatMap(([page, text]) =>
      [...text.matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, link]) => link!)
        .filter((link) => !/^https?:/.test(link) && !exists(page, link))
        .map((link) => `${page}: ${link}`),
    );
    assert.deepEqual(broken, []);
  });

  it("have at most 55,000 words, without what is generated", () => {
    const parts = /<!-- routes: \w+ -->.*?<!-- end of routes -->|<!-- bench -->.*?<!-- \/bench -->/gs;
    const wordsOf = (text: string) => text.replace(parts, "").match(/\S+/g)?.length ?? 0;
    const words = [...texts.values()]
      .filter((text) => !isGenerated(text))
      .reduce((sum, text) => sum + wordsOf(text), 0);
    assert.ok(words <= 55_000, `${words} words`);
  });

  it("are named in docs/README.md, each in one line", () => {
    const index = texts.get("docs/README.md")!;
    const unnamed = [...texts.keys()]
      .filter((page) => page !== "docs/README.md")
      .map((page) => (page.startsWith("docs/") ? page.slice("docs/".length) : `../${page}`))
      .filter((link) => index.split(`](${link})`).length !== 2);
    assert.deepEqual(unnamed, []);
  });
});

function exists(page: string, link: string): boolean {
  const [path, heading] = link.split("#") as [string, string?];
  const target = path === "" ? page : join(dirname(page), path);
  if (heading === undefined) return existsSync(join(root, target));
  const text = texts.get(target);
  return text !== undefined && (anchorsOf(text).includes(heading) || text.includes(`<a id="${heading}">`));
}

/** Headings as the anchors that a page of Markdown gives them. */
const anchorsOf = (markdown: string): string[] =>
  [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
