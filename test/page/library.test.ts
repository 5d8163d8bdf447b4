import assert from "node:assert/strict";
import { registry } from "latentkit";
import { modelsFolder } from "../helpers/models/models-folder.js";
import { checkAccess, enterToken, pageOpener } from "../helpers/page/open-page.js";
import { pageServiceStarter } from "../helpers/page/page-service.js";

describe("page: nodes and models", () => {
  const open = pageOpener();
  const { start, folder } = pageServiceStarter();

  it("finds nodes by words, and shows their inputs and outputs", async () => {
    const { url } = await start();
    const { page, errors } = await open(`${url}/#/nodes`);
    await enterToken(page);
    await page.getByText(`${[...registry.keys()].length} nodes`).waitFor();
    await page.getByLabel("Search nodes").fill("ksampler advanced");
    await page.getByText("KSampler (Advanced)").click();
    await page.getByText("start_at_step").waitFor();
    await checkAccess(page);
    await page.getByLabel("Search nodes").fill("zzzz");
    await page.getByText("No node matches.").waitFor();
    assert.deepEqual(errors, []);
  });

  it("lists model files, and finds them by words", async () => {
    const models = modelsFolder(folder(), "checkpoints/sd1_fp8");
    const { url } = await start({ models: [models] });
    const { page, errors } = await open(`${url}/#/models`);
    await enterToken(page);
    await page.getByRole("rowheader", { name: "sd1_fp8.safetensors" }).waitFor();
    await page.getByRole("cell", { name: "checkpoints", exact: true }).waitFor();
    await checkAccess(page);
    await page.getByLabel("Search models").fill("zzzz");
    await page.getByText("No model matches.").waitFor();
    assert.deepEqual(errors, []);
  });

  it("without folders: says that placeholders are drawn, and how to name one", async () => {
    const { url } = await start();
    const { page } = await open(`${url}/#/models`);
    await enterToken(page);
    await page.getByText("No model files.").waitFor();
    await page.getByText("latentkit draws placeholders").waitFor();
    await page.getByText("--models DIR").waitFor();
    await checkAccess(page);
  });
});
