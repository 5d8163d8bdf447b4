import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { render } from "latentkit";
import type { Page } from "playwright-core";
import { root } from "../helpers/folders.js";
import { checkAccess, enterToken, pageOpener, TOKEN } from "../helpers/page/open-page.js";
import { pageServiceStarter } from "../helpers/page/page-service.js";

/** Drops a file as a mouse does. */
async function drop(page: Page, name: string, type: string, bytes: Buffer): Promise<void> {
  const source = `(() => {
    const bytes = Uint8Array.from(atob(${JSON.stringify(bytes.toString("base64"))}), (c) => c.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], ${JSON.stringify(name)}, { type: ${JSON.stringify(type)} }));
    return transfer;
  })()`;
  const dataTransfer = await page.evaluateHandle(source);
  await page.locator(".view-main").dispatchEvent("drop", { dataTransfer });
}

describe("page: graph", () => {
  const open = pageOpener();
  const { start, folder } = pageServiceStarter();

  it("draws the graph of a dropped picture", async () => {
    const { url } = await start();
    const { page, errors } = await open(`${url}/#/graph`);
    await enterToken(page);
    const picture = readFileSync(join(root, "docs/first-light/2-noise_00001_.png"));
    await drop(page, "noise.png", "image/png", picture);
    await page.getByText("26 nodes").waitFor();
    await page.getByText("channels.web.comfy_api").waitFor();
    assert.equal(await page.getByRole("button", { name: "Run" }).count(), 0);
    assert.equal(await page.locator("g.node").count(), 26);
    assert.ok((await page.locator(".wire").count()) > 26);
    await page.getByText("Host", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Larger" }).click();
    await checkAccess(page);
    const small = { set: { "4.width": 64, "4.height": 64 }, format: { type: "webp" }, output: "memory" } as const;
    const { files } = await render(join(root, "examples/text-to-image.json"), small);
    await drop(page, "small.webp", "image/webp", Buffer.from(files[0]!.bytes!));
    await page.getByText("7 nodes").waitFor();
    assert.deepEqual(errors, []);
  });

  it("draws a workflow of the editor, and marks classes that it does not know", async () => {
    const { url } = await start();
    const { page, errors } = await open(`${url}/#/graph`);
    await enterToken(page);
    const graph = {
      1: { class_type: "NoSuchNode", inputs: { seed: 1, text: "x" } },
      2: { class_type: "VAEDecode", inputs: { samples: ["1", 0], vae: ["2", 0] } },
    };
    const path = join(folder(), "odd.json");
    writeFileSync(path, JSON.stringify(graph));
    await page.locator("input[type=file]").setInputFiles(path);
    await page.getByText("2 nodes").waitFor();
    assert.equal(await page.locator("g.node.unknown").count(), 1);
    await page.getByLabel("Node", { exact: true }).selectOption("1");
    await page.getByText("does not know the class NoSuchNode").waitFor();
    await checkAccess(page);
    assert.deepEqual(errors, []);
  });

  it("runs a dropped graph with changed inputs, and says why one cannot run", async () => {
    const { url } = await start({ channels: { web: { hooks_token: TOKEN, comfy_api: true } } });
    const { page, errors } = await open(`${url}/#/graph`);
    await enterToken(page);
    const graph = JSON.parse(readFileSync(join(root, "examples/text-to-image.json"), "utf8"));
    graph[2].inputs.text = "{{subject}} in a forest";
    const text = JSON.stringify(graph).replace('"seed":7', '"seed":18446744073709551615');
    const path = join(folder(), "graph.json");
    writeFileSync(path, text);
    await page.locator("input[type=file]").setInputFiles(path);
    const form = page.getByRole("region", { name: "Run this graph" });
    await form.getByLabel(/^subject/).fill("a red fox");
    await form.getByText(/^Other inputs/).click();
    const steps = form.getByLabel("Steps", { exact: true });
    await steps.fill("zero");
    await checkAccess(page);
    const run = form.getByRole("button", { name: "Run" });
    await run.click();
    await form.getByText(/"5.steps": expected/).waitFor();
    await steps.fill("3");
    await form.getByLabel("Model", { exact: true }).fill("gone.safetensors");
    await run.click();
    await form.getByText(/gone.safetensors/).waitFor();
    await form.getByLabel("Model", { exact: true }).fill("");
    await run.click();
    await page.locator(".run-state").getByText("Succeeded").waitFor();
    await page.locator(".thumbnails a").first().click();
    await page.getByText("Seed 5.seed").waitFor();
    await page.getByText("18446744073709551615", { exact: true }).first().waitFor();
    await page.getByLabel("Node", { exact: true }).selectOption("2");
    await page.locator(".node-facts").getByText("a red fox in a forest").waitFor();
    assert.deepEqual(errors, []);
  });

  it("shows form and Run of a dropped graph before one scrolls, at all widths; Ctrl+Enter runs it", async () => {
    const { url } = await start({ channels: { web: { hooks_token: TOKEN, comfy_api: true } } });
    const { page, errors } = await open(`${url}/#/graph`);
    await enterToken(page);
    const bytes = readFileSync(join(root, "examples/text-to-image.json"));
    await drop(page, "a graph with a rather long name that needs its place.json", "application/json", bytes);
    const form = page.getByRole("region", { name: "Run this graph" });
    const prompt = form.getByLabel("Positive prompt", { exact: true });
    await prompt.waitFor();
    for (const width of [1280, 800, 390]) {
      await page.setViewportSize({ width, height: 800 });
      for (const part of [form.getByRole("button", { name: "Run" }), prompt]) {
        const { y, height } = (await part.boundingBox())!;
        assert.ok(y >= 0 && y + height <= 800, `${width} px: ${y} + ${height}`);
      }
    }
    await prompt.fill("a green hill");
    await form.getByLabel("Steps", { exact: true }).fill("2");
    await page.keyboard.press("Control+Enter");
    await page.locator(".run-state").getByText("Succeeded").waitFor();
    await page.getByRole("heading", { name: "a green hill" }).waitFor();
    assert.deepEqual(errors, []);
  });

  it("runs a dropped graph once for each of several values", async () => {
    const { url } = await start({ channels: { web: { hooks_token: TOKEN, comfy_api: true } } });
    const { page, errors } = await open(`${url}/#/graph`);
    await enterToken(page);
    await drop(page, "a.json", "application/json", readFileSync(join(root, "examples/text-to-image.json")));
    const form = page.getByRole("region", { name: "Run this graph" });
    const several = async (title: string, values: string) => {
      await form.getByRole("button", { name: `Several values: ${title}`, exact: true }).click();
      const field = form.getByLabel(title, { exact: true });
      if ((await field.getAttribute("multiple")) === null) await field.fill(values);
      else await field.selectOption(values.split("\n"));
    };
    await several("Steps", "1\n2");
    await several("Seed", "18446744073709551615\n7");
    await several("Sampler", "euler\nheun");
    await checkAccess(page);
    await form.getByRole("button", { name: "Run 8 times" }).click();
    await page.getByText("8 of 8 succeeded").waitFor();
    await page.getByRole("columnheader", { name: "Seed: 18446744073709551615" }).waitFor();
    await page.getByRole("rowheader", { name: "Steps: 2, Sampler: heun" }).waitFor();
    await page.locator(".grid img").nth(7).waitFor();
    assert.deepEqual(errors, []);
  });

  it("file without a graph: says what is wrong", async () => {
    const { url } = await start();
    const { page, errors } = await open(`${url}/#/graph`);
    await enterToken(page);
    await drop(page, "notes.txt", "text/plain", Buffer.from("no graph"));
    await page.getByText(/not valid JSON|expected/).waitFor();
    await drop(page, "dawn.png", "image/png", readFileSync(join(root, "examples/input/dawn.png")));
    await page.getByText(/expected a picture with a graph/).waitFor();
    await checkAccess(page);
    assert.deepEqual(errors, []);
  });
});
