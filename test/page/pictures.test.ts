import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { decodePng } from "latentkit";
import { root } from "../helpers/folders.js";
import { until } from "../helpers/hooks/hook-service.js";
import { checkAccess, enterToken, pageOpener } from "../helpers/page/open-page.js";
import { pageServiceStarter, postMessage } from "../helpers/page/page-service.js";

describe("page: pictures", () => {
  const open = pageOpener();
  const { start, folder } = pageServiceStarter();

  it("shows each picture with its graph, receipt, seeds and times", async () => {
    const { url } = await start();
    await postMessage(url, "a quiet lake");
    const { page, errors } = await open(`${url}/#/pictures`);
    await enterToken(page);
    await page.getByRole("list", { name: "Pictures" }).getByRole("link").first().click();
    await page.getByText("512 × 512").waitFor();
    await page.getByText("preview (a stand-in for real models)").waitFor();
    await page.getByText("Seed 9.seed", { exact: true }).first().waitFor();
    await page
      .getByRole("cell", { name: /KSampler|SaveImage/ })
      .first()
      .waitFor();
    await page.getByLabel("Node", { exact: true }).selectOption("6");
    await page.locator(".node-facts").getByText("a quiet lake").waitFor();
    await checkAccess(page);
    await page.keyboard.press("Escape");
    await page.getByRole("heading", { name: "a quiet lake" }).waitFor({ state: "detached" });
    await page.goBack();
    await page.getByRole("link", { name: "Run with other values" }).click();
    const message = page.getByLabel(/^message/);
    assert.equal(await message.inputValue(), "a quiet lake");
    await message.fill("a stormy lake");
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".run-state").getByText("Succeeded").waitFor();
    assert.deepEqual(errors, []);
  });

  /** A service whose messages say a size, and two pictures of different ones. */
  const startWithSizes = async () => {
    const graph = JSON.parse(readFileSync(join(root, "examples/text-to-image.json"), "utf8"));
    graph[2].inputs.text = "{{prompt}}";
    graph[4].inputs.width = "{{width}}";
    const path = join(folder(), "graph.json");
    writeFileSync(path, JSON.stringify(graph));
    const { url } = await start({ agent: { graph: path } });
    for (const message of [
      { prompt: "a quiet lake", width: 512 },
      { prompt: "a red fox", width: 256 },
    ]) {
      await postMessage(url, JSON.stringify(message));
    }
    return url;
  };

  it("compares two pictures at one scale by a slider, which keys move", async () => {
    const { page, errors } = await open(`${await startWithSizes()}/#/pictures`);
    await enterToken(page);
    await page.getByLabel("Select a quiet lake").check();
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByText("1 selected. Select two pictures to compare.").waitFor();
    await page.getByLabel("Select a red fox").check();
    await page.getByText("a quiet lake · 512 × 512").waitFor();
    await page.getByText("a red fox · 256 × 512").waitFor();
    for (const width of [1280, 800, 390]) {
      await page.setViewportSize({ width, height: 800 });
      const [first, second] = await Promise.all(
        ["Left", "Right"].map(async (side) => (await page.getByRole("img", { name: `${side}: ` }).boundingBox())!),
      );
      assert.ok(Math.abs(first!.width - 2 * second!.width) < 0.5 && Math.abs(first!.height - second!.height) < 0.5);
      const centre = ({ x, width }: { x: number; width: number }) => x + width / 2;
      assert.ok(Math.abs(centre(first!) - centre(second!)) < 0.5, `${width} px: one is displaced`);
      assert.ok(Math.abs(first!.width - first!.height) < 0.5);
    }
    const slider = page.getByRole("slider");
    await slider.focus();
    for (let i = 0; i < 10; i++) await page.keyboard.press("ArrowRight");
    assert.match((await page.locator(".compare-stage").getAttribute("style"))!, /--share: 60%;/);
    await checkAccess(page);
    await page.getByRole("button", { name: "Clear" }).click();
    await slider.waitFor({ state: "detached" });
    assert.deepEqual(errors, []);
  });

  it("finds pictures by words, model and day, and goes on to the next one by keys", async () => {
    const { page, errors } = await open(`${await startWithSizes()}/#/pictures`);
    await enterToken(page);
    const tiles = page.getByRole("list", { name: "Pictures" }).getByRole("link");
    const shown = (count: number) => until(async () => (await tiles.count()) === count, `${count} pictures`);
    await shown(2);
    await page.getByLabel("Search pictures").fill("red");
    await shown(1);
    await tiles.filter({ hasText: "a red fox" }).waitFor();
    await page.getByLabel("Search pictures").fill("");
    await shown(2);
    await page.getByLabel("Model").selectOption("preview-sd15.safetensors");
    await shown(2);
    await page.getByLabel("To", { exact: true }).fill("2020-01-01");
    await page.getByText("No picture matches.").waitFor();
    await checkAccess(page);
    await page.getByLabel("To", { exact: true }).fill("");
    await page.getByLabel("From", { exact: true }).fill("2020-01-01");
    await shown(2);
    await tiles.first().click();
    await page.getByRole("heading", { name: "a red fox" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "Previous picture" }).count(), 0);
    await page.keyboard.press("ArrowRight");
    await page.getByRole("heading", { name: "a quiet lake" }).waitFor();
    await page.getByText("512 × 512").waitFor();
    await checkAccess(page);
    await page.keyboard.press("ArrowLeft");
    await page.getByRole("heading", { name: "a red fox" }).waitFor();
    assert.deepEqual(errors, []);
  });

  it("saves the selected pictures as one archive", async () => {
    const url = await startWithSizes();
    const { page, errors } = await open(`${url}/#/pictures`);
    await enterToken(page);
    for (const prompt of ["a quiet lake", "a red fox"]) await page.getByLabel(`Select ${prompt}`).check();
    await page.getByText("2 selected").waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), "pictures.zip");
    const files = filesOfZip(readFileSync((await download.path())!));
    assert.equal(files.length, 2);
    for (const { name, bytes, crc } of files) {
      assert.match(name, /^[0-9a-f]{8} .*_00001_\.png$/);
      assert.equal(crc, crc32(bytes));
      assert.ok((await decodePng(bytes)).height === 512);
    }
    assert.deepEqual(errors, []);
  });

  it("deletes selected pictures and their files, if the configuration allows it", async () => {
    const { url } = await start({ page_delete: true });
    const ids: string[] = [];
    for (const message of ["a quiet lake", "a red fox"]) ids.push(await postMessage(url, message));
    const { page, errors } = await open(`${url}/#/pictures`);
    await enterToken(page);
    await page.getByLabel("Select a red fox").waitFor();
    await page.getByLabel("Select a quiet lake").check();
    const file = join(folder(), "out/runs", ids[0]!, "hook_00001_.png");
    assert.ok(existsSync(file));
    await page.getByRole("button", { name: "Delete" }).click();
    await checkAccess(page);
    assert.ok(existsSync(file), "it asks first");
    await page.getByRole("button", { name: "Permanently delete 1 picture and its file" }).click();
    await page.getByLabel("Select a quiet lake").waitFor({ state: "detached" });
    assert.ok(!existsSync(file));
    await page.goto(`${url}/#/runs/${ids[0]}`);
    await page.getByRole("heading", { name: "a quiet lake" }).waitFor();
    await page.locator(".run-state").getByText("Succeeded").waitFor();
    assert.equal(await page.locator(".thumbnails img").count(), 0);
    assert.deepEqual(errors, []);
  });

  it("without a picture: says when there will be one", async () => {
    const { url } = await start();
    const { page } = await open(`${url}/#/pictures`);
    await enterToken(page);
    await page.getByText("No pictures yet.").waitFor();
    await checkAccess(page);
  });
});

/** Files of an archive that its directory lists, each where the directory and its own header say. */
function filesOfZip(zip: Buffer): { name: string; bytes: Buffer; crc: number }[] {
  const end = zip.lastIndexOf(Buffer.from("PK\u0005\u0006"));
  const count = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  assert.equal(at + zip.readUInt32LE(end + 12), end);
  return Array.from({ length: count }, () => {
    assert.equal(zip.readUInt32LE(at), 0x02014b50);
    const [crc, size, length, local] = [
      zip.readUInt32LE(at + 16),
      zip.readUInt32LE(at + 24),
      zip.readUInt16LE(at + 28),
      zip.readUInt32LE(at + 42),
    ];
    const name = zip.toString("utf8", at + 46, at + 46 + length);
    at += 46 + length;
    assert.equal(zip.readUInt32LE(local), 0x04034b50);
    assert.equal(zip.readUInt32LE(local + 14), crc);
    assert.equal(zip.toString("utf8", local + 30, local + 30 + length), name);
    const start = local + 30 + length;
    return { name, crc, bytes: zip.subarray(start, start + size) };
  });
}
