// docs/decisions.md: written by hand. A comment cites a decision by its headline: `// decisions: A is B; C is D`.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup.mjs";

const FOLDERS = ["bench", "bin", "native", "scripts", "src"];
const CITATION = /(?:\/\/|#) decisions: (.+)/g;

/** Headlines of the page, without the full stop. */
export const headlines = (page = readFileSync(join(root, "docs/decisions.md"), "utf8")) =>
  new Set([...page.matchAll(/^\*\*(.+?)\.\*\* /gm)].map(([, headline]) => headline));

/** Headlines that a text cites. */
export const citedIn = (text) =>
  [...text.matchAll(CITATION)].flatMap(([, list]) => list.split(";").map((headline) => headline.trim()));

/** Citations of decisions that the page does not have, each with its file. */
export function brokenCitations(known = headlines()) {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|tsx|mjs|cmake|h|cpp|cu|cuh)$/.test(entry.name))
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
      .filter((path) => !/third_party|scripts\/docs\/decisions\.mjs/.test(path))
      .flatMap((path) => {
        const cited = citedIn(readFileSync(path, "utf8"));
        return cited
          .filter((headline) => !known.has(headline))
          .map((headline) => `${path.slice(root.length)}: ${headline}`);
      }),
  );
}
