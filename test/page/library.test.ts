import assert from "node:assert/strict";
import { checkAccess, enterToken, pageOpener } from "../helpers/page/open-page.js";
import { pageServiceStarter } from "../helpers/page/page-service.js";

describe("page: nodes and models", function () {
  this.timeout(60_000);
  const open = pageOpener();
  const { start } = pageServiceStarter();

  it("finds nodes by words, and shows their inputs and outputs", async () => {
    const { url } = await start();
    const { page, errors } = await open(`${url}/#/nodes`);
    await enterToken(page);
    await page.getByText("202 nodes").waitFor();
    await page.getByLabel("Search nodes").fill("ksampler advanced");
    await page.getByText("KSampler (Advanced)").click();
    await page.getByText("start_at_step").waitFor();
    await checkAccess(page);
    await page.getByLabel("Search nodes").fill("zzzz");
    await page.getByText("No node matches.").waitFor();
    assert.deepEqual(errors, []);
  });

  it("without folders: says that the preview host needs no models", async () => {
    const { url } = await start();
    const { page } = await open(`${url}/#/models`);
    await enterToken(page);
    await page.getByText("No model files.").waitFor();
    await page.getByText("--models DIR").waitFor();
    await checkAccess(page);
  });
});
