import assert from "node:assert/strict";
import { checkAccess, enterToken, pageOpener } from "../helpers/page/open-page.js";
import { pageServiceStarter, postMessage } from "../helpers/page/page-service.js";

describe("page: pictures", () => {
  const open = pageOpener();
  const { start } = pageServiceStarter();

  it("shows each picture with its graph, receipt, seeds and times", async () => {
    const { url } = await start();
    await postMessage(url, "a quiet lake");
    const { page, errors } = await open(`${url}/#/pictures`);
    await enterToken(page);
    await page.getByRole("list", { name: "Pictures" }).getByRole("link").first().click();
    await page.getByText("512 × 512").waitFor();
    await page.getByText("preview (a stand-in for real models)").waitFor();
    await page.getByText("Seed 3.seed", { exact: true }).waitFor();
    await page
      .getByRole("cell", { name: /KSampler|SaveImage/ })
      .first()
      .waitFor();
    await page.getByLabel("Node", { exact: true }).selectOption("2");
    await page.locator(".node-facts").getByText("a quiet lake").waitFor();
    await checkAccess(page);
    await page.keyboard.press("Escape");
    await page.getByRole("heading", { name: "hook_00001_.png" }).waitFor({ state: "detached" });
    await page.goBack();
    await page.getByRole("link", { name: "Run with other values" }).click();
    const message = page.getByLabel(/^message/);
    assert.equal(await message.inputValue(), "a quiet lake");
    await message.fill("a stormy lake");
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".run-state").getByText("Succeeded").waitFor();
    assert.deepEqual(errors, []);
  });

  it("compares two pictures by a slider, which keys move", async () => {
    const { url } = await start();
    for (const message of ["a quiet lake", "a red fox"]) await postMessage(url, message);
    const { page, errors } = await open(`${url}/#/pictures`);
    await enterToken(page);
    const buttons = page.getByRole("button", { name: /^Compare / });
    await buttons.nth(1).waitFor();
    await buttons.nth(0).click();
    await page.getByText("Choose another picture to compare.").waitFor();
    await buttons.nth(1).click();
    const slider = page.getByRole("slider");
    await slider.focus();
    for (let i = 0; i < 10; i++) await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator(".compare-stage").getAttribute("style"), "--share: 60%;");
    await checkAccess(page);
    await page.getByRole("button", { name: "End comparison" }).click();
    await slider.waitFor({ state: "detached" });
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
