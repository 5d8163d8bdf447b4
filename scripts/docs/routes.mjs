// The tables of endpoints in docs/hooks.md and docs/comfyui.md, made of the routes between these two comments:
// <!-- routes: hooks -->, or another door, and <!-- end of routes -->. A route's section is a heading of one of the pages
// docs/hooks*.md.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGraphAgent } from "../../dist/service/agent/graph-agent.js";
import { createServiceWithRoutes } from "../../dist/service/hooks/service.js";
import { root } from "../setup.mjs";
import { code, table } from "./markdown.mjs";

const REGION = /(<!-- routes: (\w+) -->\n\n).*?(\n\n<!-- end of routes -->)/gs;
const ignore = () => undefined;
const SENDER = /** @type {const} */ ({ signature: "github", secrets: "0123456789abcdef", message: "x" });
const OPEN = /** @type {const} */ ({ comfy_api: "token", comfy_classic: "token", incoming: { name: SENDER } });
const RIGHTS = {
  open: "",
  token: "token",
  sender: "signature",
  run: "token or signed address",
  asset: "token or signed address",
};

/** @typedef {import("../../dist/service/hooks/http/call.js").Route} Route */

/** The pages with tables of endpoints, by path. */
export async function pagesWithRoutes() {
  const routes = await everyRoute();
  const rowOf = rowWith(sections());
  return ["docs/hooks.md", "docs/comfyui.md"].map((path) => {
    const text = readFileSync(join(root, path), "utf8");
    const rowsOf = (wanted) => routes.filter(({ door = "hooks" }) => door === wanted).map(rowOf);
    const filled = text.replace(REGION, (_, begin, door, end) => {
      const [head, width] =
        door === "hooks" ? [["Method and path", "What it does", "Needs"], 3] : [["Method and path", "What it does"], 2];
      return begin + table([head, ...rowsOf(door).map((row) => row.slice(0, width))]) + end;
    });
    return [path, filled];
  });
}

/** Routes of a service that opens every door. */
async function everyRoute() {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-docs-"));
  const agent = createGraphAgent({ graph: {}, outputDir: folder });
  const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };
  /** @type {readonly Route[]} */
  let routes = [];
  const service = createServiceWithRoutes({ agent, logger, config: { hooks_token: "docs", ...OPEN } }, (_, own) => {
    routes = own;
    return [];
  });
  await service.close(0);
  await agent.close();
  rmSync(folder, { recursive: true });
  return routes;
}

/** Links to the headings of the pages on hooks, by anchor. */
function sections() {
  const pages = readdirSync(join(root, "docs")).filter((name) => /^hooks.*\.md$/.test(name));
  const linksOf = (page) =>
    [...readFileSync(join(root, "docs", page), "utf8").matchAll(/^## (.+)$/gm)].map(([, heading]) => {
      const anchor = heading.toLowerCase().replaceAll(" ", "-");
      return /** @type {const} */ ([anchor, `${page}#${anchor}`]);
    });
  return new Map(pages.flatMap(linksOf));
}

/** @param {ReadonlyMap<string, string>} links */
const rowWith = (links) => (/** @type {Route} */ route) => {
  const { door, paths, access = "token", method, summary, section, query, body } = route;
  if (section !== undefined && !links.has(section)) throw new Error(`${paths[0]}: no page on hooks has #${section}.`);
  // each path of the classic API exists below /api too: the page says so once
  const shown = door === "classic" ? paths.slice(0, 1) : paths;
  const names = Object.keys(query ?? {});
  const suffix = names.length === 0 ? "" : `?${names.map((name) => `${name}=…`).join("&")}`;
  const [first, ...aliases] = shown.map(
    (path) => path.replace("/in/name", "/in/NAME").replace(/:(\w+)/g, "{$1}") + suffix,
  );
  const { shape = {} } = /** @type {{ shape?: Record<string, import("zod").ZodType> }} */ (body?.schema ?? {});
  const fields = Object.entries(shape).map(([name, field]) => name + (field.isOptional() ? "?" : ""));
  return [
    [`${method} ${first}`, ...aliases].map(code).join(", "),
    summary.replace(` (${SENDER.signature})`, "") +
      (fields.length === 0 ? "" : `: ${code(`{ ${fields.join(", ")} }`)}`) +
      (section ? ` ([more](${links.get(section)}))` : ""),
    RIGHTS[access],
  ];
};
