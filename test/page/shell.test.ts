import assert from "node:assert/strict";
import { checkAccess, enterToken, pageOpener, TOKEN } from "../helpers/page/open-page.js";
import { pageServiceStarter } from "../helpers/page/page-service.js";

describe("page: token and shell", function () {
  this.timeout(60_000);
  const open = pageOpener();
  const { start, folder } = pageServiceStarter();

  it("asks for the token, says that one is wrong, and keeps the right one in memory alone", async () => {
    const { url } = await start();
    const { page, errors, requests } = await open(url);
    await page.getByRole("heading", { name: "Hook token" }).waitFor();
    await checkAccess(page);
    await page.getByLabel("Token", { exact: true }).fill("wrong");
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByText("This token is wrong.").waitFor();
    await enterToken(page);
    await page.getByText("No runs yet.").waitFor();
    await checkAccess(page);
    const stored = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])");
    assert.equal(stored, '[{},{},""]');
    assert.ok(requests.length > 3);
    for (const request of requests) assert.ok(request.startsWith(url), request);
    for (const request of requests) assert.ok(!request.includes(TOKEN), "no address holds the token");
    assert.deepEqual(errors, []);
  });

  it("service without a token: says how to set one", async () => {
    const { url } = await start({}, { token: null });
    const { page, errors } = await open(url);
    await page.getByText("This service has no token").waitFor();
    await page.getByText("export LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN=").waitFor();
    await checkAccess(page);
    assert.deepEqual(errors, []);
  });

  it("token that is replaced later: asks again, and goes on where it was", async () => {
    const store = `sqlite:${folder()}/runs.db`;
    const first = await start({ store });
    const port = Number(new URL(first.url).port);
    const { page } = await open(first.url);
    await enterToken(page);
    await page.getByRole("link", { name: "Nodes" }).click();
    await page.getByRole("link", { name: "Runs" }).click();
    await page.getByText("No runs yet.").waitFor();
    await first.close(0);
    await page.getByText("The service does not respond.").waitFor();
    await start({ store, port }, { token: "another-token-of-some-length" });
    await page.getByText("does not take the token any more").waitFor();
    await enterToken(page, "another-token-of-some-length");
    await page.getByText("No runs yet.").waitFor();
    assert.equal(await page.getByText("The service does not respond.").count(), 0);
  });

  it("is dark where the system is", async () => {
    const { url } = await start();
    const { page } = await open(url, { scheme: "dark" });
    await enterToken(page);
    await page.getByText("No runs yet.").waitFor();
    await checkAccess(page);
    const colour = await page.evaluate("getComputedStyle(document.body).backgroundColor");
    assert.equal(colour, "rgb(16, 18, 22)");
  });
});
