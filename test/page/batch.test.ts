import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { root } from "../helpers/folders.js";
import { checkAccess, enterToken, pageOpener } from "../helpers/page/open-page.js";
import { pageServiceStarter } from "../helpers/page/page-service.js";

/** Opens the form of a new run, and gives fields several values. */
async function fillSeveral(page: Page, fields: readonly (readonly [title: string, values: string])[]): Promise<void> {
  await page.getByRole("link", { name: "New run" }).click();
  for (const [title, values] of fields) {
    await page.getByRole("button", { name: `Several values: ${title}` }).click();
    await page.getByLabel(new RegExp(`^${title}`)).fill(values);
  }
}

describe("page: batch", () => {
  const open = pageOpener();
  const { start, folder } = pageServiceStarter();

  it("runs every combination, shows them as a grid, cancels the rest and resumes", async () => {
    const graph = JSON.parse(readFileSync(join(root, "examples/text-to-image.json"), "utf8"));
    graph[2].inputs.text = "{{message}}";
    graph[5].inputs.steps = "{{steps}}";
    const path = join(folder(), "graph.json");
    writeFileSync(path, JSON.stringify(graph));
    const { url } = await start({ agent: { graph: path } });
    const { page, errors } = await open(url);
    await enterToken(page);
    await fillSeveral(page, [
      ["message", "a red fox\n\na blue lake"],
      ["steps", "4\n10000"],
    ]);
    await checkAccess(page);
    await page.getByRole("button", { name: "Start 4 runs" }).click();
    await page.getByText("2 of 4 succeeded, 2 to go").waitFor();
    await page.getByRole("columnheader", { name: "message: a red fox" }).waitFor();
    await page.getByRole("rowheader", { name: "steps: 10000" }).waitFor();
    const pictures = page.locator(".grid img");
    await pictures.nth(1).waitFor();
    // nothing moves when a picture takes the place of a state
    const sizeOf = async (place: Locator) => {
      const { width, height } = (await place.boundingBox())!;
      return { width: Math.round(width), height: Math.round(height) };
    };
    assert.deepEqual(await sizeOf(page.locator(".cell").first()), await sizeOf(pictures.first()));
    await checkAccess(page);
    await page.getByRole("button", { name: "Cancel the rest" }).click();
    await page.getByText("2 of 4 succeeded, 2 failed or cancelled").waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("2 of 4 succeeded, 2 to go").waitFor();
    await page.getByRole("button", { name: "Cancel the rest" }).click();
    await page.getByText("2 failed or cancelled").waitFor();
    await pictures.first().click();
    await page.getByText("512 × 512").waitFor();
    await page.getByRole("link", { name: /^Run / }).first().click();
    await page.getByRole("link", { name: /^Batch / }).click();
    await pictures.nth(1).waitFor();
    assert.deepEqual(errors, []);
  });

  it("too many runs: says how many, and starts none", async () => {
    const { url } = await start();
    const { page } = await open(url);
    await enterToken(page);
    await fillSeveral(page, [["message", Array.from({ length: 101 }, (_, i) => `lake ${i}`).join("\n")]]);
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByText("A batch can have at most 100 runs; this one would have 101.").waitFor();
  });
});
