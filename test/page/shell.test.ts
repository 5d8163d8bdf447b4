import assert from "node:assert/strict";
import { checkAccess, enterToken, pageOpener, TOKEN } from "../helpers/page/open-page.js";
import { pageServiceStarter } from "../helpers/page/page-service.js";

describe("page: token and shell", () => {
  const open = pageOpener();
  const { start, folder } = pageServiceStarter();

  it("asks for the token, says that one is wrong, and keeps the right one for this tab alone", async () => {
    const { url } = await start();
    const { page, errors, requests } = await open(url);
    await page.getByRole("heading", { name: "Hook token" }).waitFor();
    await checkAccess(page);
    await page.getByLabel("Token", { exact: true }).fill("wrong");
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByText("This token is not valid.").waitFor();
    await enterToken(page);
    await page.getByText("No runs yet.").waitFor();
    await checkAccess(page);
    await page.reload();
    await page.getByText("No runs yet.").waitFor();
    const stored = await page.evaluate("JSON.stringify([localStorage.length, sessionStorage.length, document.cookie])");
    assert.equal(stored, '[0,1,""]');
    const other = await page.context().newPage();
    await other.goto(url);
    await other.getByRole("heading", { name: "Hook token" }).waitFor();
    await other.getByText("Enter the token with which the service was started.").waitFor();
    assert.ok(requests.length > 3);
    for (const request of requests) assert.ok(request.startsWith(url), request);
    for (const request of requests) assert.ok(!request.includes(TOKEN), "no address holds the token");
    assert.deepEqual(errors, []);
  });

  it("token in the fragment: opens with it, and removes it from the address", async () => {
    const { url } = await start();
    const { page, errors, requests } = await open(`${url}/#token=${TOKEN}`);
    await page.getByText("No runs yet.").waitFor();
    assert.equal(page.url(), `${url}/`);
    await page.reload();
    await page.getByText("No runs yet.").waitFor();
    const sent = requests.filter((request) => !request.startsWith(`${url}/#`));
    assert.ok(sent.length > 3);
    for (const request of sent) assert.ok(!request.includes(TOKEN), "no request holds the token");
    assert.deepEqual(errors, []);
    const wrong = (await open(`${url}/#token=wrong%`)).page;
    await wrong.getByText("no longer accepts this token").waitFor();
    assert.equal(await wrong.evaluate("sessionStorage.length"), 0);
    await enterToken(wrong);
    await wrong.getByText("No runs yet.").waitFor();
  });

  it("skips the head by one key", async () => {
    const { url } = await start();
    const { page } = await open(url);
    await enterToken(page);
    await page.reload();
    await page.getByText("No runs yet.").waitFor();
    await page.keyboard.press("Tab");
    assert.equal(await page.locator(":focus").innerText(), "Skip to the content");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    assert.equal(await page.locator("main :focus").count(), 1);
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
    await page.getByText("no longer accepts this token").waitFor();
    await enterToken(page, "another-token-of-some-length");
    await page.getByText("No runs yet.").waitFor();
    assert.equal(await page.getByText("The service does not respond.").count(), 0);
  });

  it("is small, and painted at once @long", async () => {
    const { url } = await start();
    const { page } = await open(url);
    const times: number[] = [];
    for (let i = 0; i < 5; i++) {
      await page.reload();
      await page.getByRole("heading", { name: "Hook token" }).waitFor();
      times.push(await page.evaluate<number>("performance.getEntriesByName('first-contentful-paint')[0].startTime"));
    }
    const size = await page.evaluate<number>(
      "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js'))" +
        ".reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)",
    );
    console.log(`first paint ${Math.round(Math.min(...times))} ms, script ${size} bytes`);
    assert.ok(Math.min(...times) < 300, `${times}`);
    assert.ok(size > 5000 && size < 80_000, `${size}`);
  });

  it("works by keys alone, without anything that moves", async () => {
    const { url } = await start({}, { isSlow: true });
    const { page, errors } = await open(url);
    await page.emulateMedia({ reducedMotion: "reduce" });
    await page.getByLabel("Token", { exact: true }).waitFor();
    await page.keyboard.type(TOKEN);
    await page.keyboard.press("Enter");
    await page.getByText("No runs yet.").waitFor();
    const focused = page.locator(":focus");
    const tabTo = async (name: string | RegExp) => {
      const target = page.getByRole("link", { name }).or(page.getByRole("button", { name })).or(page.getByLabel(name));
      for (let i = 0; i < 20 && (await focused.and(target).count()) === 0; i++) await page.keyboard.press("Tab");
      await focused.and(target).waitFor();
    };
    await tabTo("New run");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "New run" }).waitFor();
    await tabTo(/^Message/);
    await page.keyboard.type("hold");
    await tabTo("Start");
    await page.keyboard.press("Enter");
    await page.locator(".run-state").getByText("Running").waitFor();
    assert.equal(await page.evaluate("document.getAnimations().length"), 0);
    await tabTo("Cancel");
    await page.keyboard.press("Enter");
    await page.locator(".run-state").getByText("Cancelled").waitFor();
    await page.getByRole("button", { name: "Close" }).focus();
    await page.keyboard.press("Escape");
    await page.getByRole("heading", { name: "hold" }).waitFor({ state: "detached" });
    assert.deepEqual(errors, []);
  });

  it("is dark if the system is", async () => {
    const { url } = await start();
    const { page } = await open(url, { scheme: "dark" });
    await enterToken(page);
    await page.getByText("No runs yet.").waitFor();
    const colour = await page.evaluate("getComputedStyle(document.body).backgroundColor");
    assert.equal(colour, "rgb(16, 18, 22)");
    await checkAccess(page);
  });
});
