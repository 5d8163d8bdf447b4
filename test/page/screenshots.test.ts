import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { decodePng } from "latentkit";
import type { Page } from "playwright-core";
import { root } from "../helpers/folders.js";
import { enterToken, pageOpener, TOKEN } from "../helpers/page/open-page.js";
import { pageServiceStarter } from "../helpers/page/page-service.js";

const PROMPTS = [
  "a yellow moon over a purple sea",
  "a white boat on a blue lake",
  "a green hill under a pink sky",
  "an orange sun over a brown desert",
  "a red fox in a green forest under a blue sky",
];

/** Takes a picture of the window; it becomes that of the documents if these have none. To renew one, delete it. */
async function shoot(page: Page, name: string): Promise<void> {
  const bytes = await page.screenshot({ animations: "disabled", caret: "hide" });
  const { width, data } = await decodePng(bytes);
  assert.equal(width, 1280);
  assert.ok(new Set(data.subarray(0, 400_000)).size > 20, "it shows something");
  const path = join(root, "docs/page", name);
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
}

describe("page: pictures of the documents", () => {
  const open = pageOpener();
  const { start, folder } = pageServiceStarter();

  it("runs in light colours, a picture with its graph in dark ones", async () => {
    const graph = JSON.parse(readFileSync(join(root, "examples/text-to-image.json"), "utf8"));
    graph[2].inputs.text = "{{message}}";
    const path = join(folder(), "graph.json");
    writeFileSync(path, JSON.stringify(graph));
    const { url } = await start({ agent: { graph: path } });
    for (const message of PROMPTS) {
      await fetch(`${url}/hooks/agent`, {
        method: "POST",
        headers: { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json", Prefer: "wait=60" },
        body: JSON.stringify({ message, name: message }),
      });
    }
    const { page } = await open(url);
    await enterToken(page);
    await page.getByRole("listitem").filter({ hasText: "red fox" }).getByRole("link").click();
    const thumbnail = page.locator(".thumbnails img");
    await thumbnail.waitFor();
    await thumbnail.evaluate((image) => (image as unknown as { decode(): Promise<void> }).decode());
    await shoot(page, "runs.png");
    const dark = (await open(`${url}/#/pictures`, { scheme: "dark" })).page;
    await enterToken(dark);
    await dark.getByRole("list", { name: "Pictures" }).getByRole("link").first().click();
    await dark.locator(".drawing").waitFor();
    await dark.locator(".drawing").evaluate((element) => (element as unknown as Scrollable).scrollIntoView(false));
    await shoot(dark, "pictures.png");
  });
});

/** The tests have no types of the browser. */
type Scrollable = { scrollIntoView(isTop: boolean): void };
