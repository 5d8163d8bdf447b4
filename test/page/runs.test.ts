import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createMemoryStore } from "latentkit/hooks";
import { createServer } from "latentkit/service";
import type { Page } from "playwright-core";
import { createServiceWithRoutes } from "#src/service/hooks/service.js";
import { webRoutes } from "#src/service/web/routes.js";
import { root } from "../helpers/folders.js";
import { until } from "../helpers/hooks/hook-service.js";
import { upTo } from "../helpers/http/sse-reader.js";
import { checkAccess, enterToken, pageOpener, TOKEN } from "../helpers/page/open-page.js";
import { pageServiceStarter, postMessage } from "../helpers/page/page-service.js";

/** The tests have no types of the browser. */
type Img = { naturalWidth: number };
type Li = { value?: number };
type Scroller = { scrollTo(x: number, y: number): void };
type Frames = { requestAnimationFrame(callback: (at: number) => void): void };

const badge = (page: Page) => page.locator(".run-state");
const row = (page: Page, name: string) => page.getByRole("listitem").filter({ hasText: name });

describe("page: runs", () => {
  const open = pageOpener();
  const { start, folder } = pageServiceStarter();

  it("starts a run of the graph by its form, and shows its picture, times and events", async () => {
    const { url } = await start();
    const { page, errors } = await open(url);
    await enterToken(page);
    await page.getByRole("link", { name: "New run" }).click();
    await page.getByLabel(/^message/).fill("a quiet lake {");
    await checkAccess(page);
    const button = page.getByRole("button", { name: "Start" });
    for (const width of [1280, 800, 390]) {
      await page.setViewportSize({ width, height: 500 });
      const { y, height } = (await button.boundingBox())!;
      assert.ok(y + height <= 500, `${width} px: the button ends at ${y + height}`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    await button.click();
    await badge(page).getByText("Succeeded").waitFor();
    await page.getByRole("cell", { name: /SaveImage/ }).waitFor();
    const picture = page.getByRole("img", { name: "hook_00001_.png" });
    await picture.waitFor();
    await until(async () => (await picture.evaluate((image) => (image as unknown as Img).naturalWidth)) === 512);
    await page.getByText(/^Events \(\d+\)$/).click();
    await page.getByText('"hook_00001_.png"').first().waitFor();
    await checkAccess(page);
    assert.deepEqual(errors, []);
  });

  it("calls a run by its message, finds it by words and seed, and runs it again with other values", async () => {
    const { url } = await start();
    const hostile = "<img src=x onerror=alert(1)> a quiet lake";
    await postMessage(url, hostile, { tags: ["for the book"] });
    await postMessage(url, "a red fox");
    const { page, errors } = await open(url);
    await enterToken(page);
    await row(page, hostile).getByText("Succeeded").waitFor();
    await row(page, "a red fox").locator("img").waitFor();
    await checkAccess(page);
    for (const words of ["QUIET lake", "for the book", "hook:ingress quiet", "preview-sd15 onerror"]) {
      await page.getByLabel("Search runs").fill(words);
      await row(page, "a red fox").waitFor({ state: "detached" });
      await row(page, hostile).waitFor();
      await page.getByLabel("Search runs").fill("");
      await row(page, "a red fox").waitFor();
    }
    await row(page, hostile).getByRole("link").click();
    await page.getByRole("heading", { name: hostile }).waitFor();
    const started = page.getByRole("region", { name: "Started with" });
    await started.getByText(hostile).waitFor();
    await started.getByText("preview-sd15.safetensors").waitFor();
    await checkAccess(page);
    await page.getByRole("button", { name: "Run again" }).click();
    assert.equal(await page.getByLabel(/^message/).inputValue(), hostile);
    await page.getByLabel(/^message/).fill("a stormy lake");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("heading", { name: "a stormy lake" }).waitFor();
    await badge(page).getByText("Succeeded").waitFor();
    await row(page, "a stormy lake").getByText("Succeeded").waitFor();
    assert.deepEqual(errors, []);
  });

  it("list and drawer say the same of a run, whichever has asked last", async () => {
    const { url } = await start({}, { isSlow: true });
    const id = await postMessage(url, "hold");
    const { page } = await open(`${url}/#/runs/${id}`);
    // a list that comes late, with what was true before
    let held: { fulfill(): Promise<void> } | undefined;
    await page.route("**/api/page/runs?**", async (route) => {
      if (held !== undefined) return route.abort();
      const response = await route.fetch();
      if (!(await response.text()).includes("running")) return route.fulfill({ response });
      held = { fulfill: () => route.fulfill({ response }) };
    });
    await enterToken(page);
    await badge(page).getByText("Running").waitFor();
    await until(async () => held !== undefined, "a list with the run");
    await page.getByRole("button", { name: "Cancel" }).click();
    await badge(page).getByText("Cancelled").waitFor();
    await held!.fulfill();
    await page.getByRole("listitem").filter({ hasText: "hold" }).waitFor();
    assert.equal(await badge(page).innerText(), "Cancelled");
    await row(page, "hold").getByText("Cancelled").waitFor();
  });

  it("shows progress as it is, cancels, and runs again", async () => {
    const { url } = await start({}, { isSlow: true });
    const { page, errors } = await open(url);
    await enterToken(page);
    // it is under way for as long as the checks take
    const message = `work 400 until ${join(folder(), "never")}`;
    await postMessage(url, message, { name: "slow one" });
    await row(page, "slow one").getByText("Running").waitFor();
    await row(page, "slow one").getByRole("link").click();
    await page.getByText(/node 1: step \d+ of 400/).waitFor();
    const bar = page.getByRole("progressbar", { name: "Progress", exact: true });
    const value = async () => Number(await bar.getAttribute("value"));
    const before = await value();
    await until(async () => (await value()) > before, "progress");
    await checkAccess(page);
    await page.getByRole("button", { name: "Cancel" }).click();
    await badge(page).getByText("Cancelled").waitFor();
    await row(page, "slow one").getByText("Cancelled").waitFor();
    await page.getByRole("cell", { name: "not finished" }).waitFor();
    await page.getByRole("button", { name: "Run again" }).click();
    assert.equal(await page.getByLabel(/^Message/).inputValue(), message);
    await checkAccess(page);
    await page.getByRole("button", { name: "Start" }).click();
    await badge(page).getByText("Running").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await badge(page).getByText("Cancelled").waitFor();
    assert.deepEqual(errors, []);
  });

  it("pauses the queue, starts runs of a higher priority first, and resumes", async () => {
    const web = { hooks_token: TOKEN, hooks_allow_request_session_key: true };
    const { url } = await start({ limits: { running: 1 }, channels: { web } }, { isSlow: true });
    const { page, errors } = await open(url);
    await enterToken(page);
    const queue = page.getByRole("region", { name: "Queue" });
    await queue.getByRole("button", { name: "Pause the queue" }).click();
    await queue.getByText("Paused: new runs do not start. 0 running, 0 waiting").waitFor();
    await postMessage(url, "hold", { name: "ordinary", sessionKey: "hook:other" });
    await page.getByRole("link", { name: "New run" }).click();
    await page.getByLabel("Message required").fill("hold");
    await page.getByLabel("Priority").fill("5");
    await checkAccess(page);
    await page.getByRole("button", { name: "Start" }).click();
    await queue.getByText("0 running, 2 waiting").waitFor();
    await row(page, "priority 5").getByText("number 1 in the queue").waitFor();
    await queue.getByRole("button", { name: "Resume the queue" }).click();
    await row(page, "priority 5").getByText("Running").waitFor();
    await row(page, "ordinary").getByText("number 1 in the queue").waitFor();
    assert.deepEqual(errors, []);
  });

  it("shows previews of a sampler's steps if the configuration has them", async () => {
    const graph = JSON.parse(readFileSync(join(root, "examples/text-to-image.json"), "utf8"));
    graph[5].inputs.steps = 10_000;
    const path = join(folder(), "long.json");
    writeFileSync(path, JSON.stringify(graph));
    const { url } = await start({ agent: { graph: path, previews: true } });
    const { page, errors } = await open(`${url}/#/runs/${await postMessage(url, "{}")}`);
    await enterToken(page);
    const preview = page.getByRole("img", { name: /^Preview of node 5, step \d+ of 10000$/ });
    await preview.waitFor();
    const source = () => preview.getAttribute("src");
    const first = await source();
    await until(async () => (await source()) !== first, "the next preview");
    assert.ok(await preview.evaluate((image) => (image as unknown as Img).naturalWidth === 64));
    await page.getByText(/^Events \(/).click();
    await checkAccess(page);
    await page.getByRole("button", { name: "Cancel" }).click();
    await badge(page).getByText("Cancelled").waitFor();
    await preview.waitFor({ state: "detached" });
    assert.deepEqual(errors, []);
  });

  it("shows why a run failed, places in the queue, and runs of one state or session", async () => {
    const { url } = await start({}, { isSlow: true });
    const { page } = await open(url);
    await enterToken(page);
    await postMessage(url, "fail", { name: "broken" });
    await row(page, "broken").getByText("The agent failed, as asked.").waitFor();
    await postMessage(url, "hold", { name: "first" });
    await postMessage(url, "hold", { name: "second" });
    await row(page, "second").getByText("number 1 in the queue").waitFor();
    await page.getByLabel("State").selectOption("failed");
    await row(page, "first").waitFor({ state: "detached" });
    await row(page, "broken").waitFor();
    await page.getByLabel("State").selectOption("");
    await page.getByLabel("Search runs").fill("hook:nobody");
    await page.getByText("No run matches.").waitFor();
    await page.getByLabel("Search runs").fill("hook:ingress");
    await row(page, "second").waitFor();
  });

  it("service that restarts: reads on behind the last event", async () => {
    const store = `sqlite:${folder()}/runs.db`;
    const web = { hooks_token: TOKEN, on_restart: "requeue" };
    const first = await start({ store, channels: { web } }, { isSlow: true });
    const port = Number(new URL(first.url).port);
    const go = join(folder(), "go");
    const id = await postMessage(first.url, `work 60 until ${go}`);
    const { page, errors } = await open(`${first.url}/#/runs/${id}`);
    await enterToken(page);
    await page.getByText(/step \d+ of 60/).waitFor();
    await first.close(0);
    await page.getByText("The service does not respond.").waitFor();
    writeFileSync(go, "");
    await start({ store, port, channels: { web } }, { isSlow: true });
    await page
      .locator(".run-state")
      .getByText(/Interrupted|Succeeded/)
      .waitFor();
    await page.getByText(/^Events \(/).click();
    const numbers = await page
      .locator(".events li")
      .evaluateAll((items) => items.map((item) => (item as unknown as Li).value));
    assert.deepEqual(numbers, upTo(numbers.length));
    assert.match(await page.locator(".events li").last().innerText(), /^(done|aborted|error)/);
    assert.deepEqual(errors, []);
  });

  /** Opens the list of 10,000 ended runs, and closes their service after the work. */
  const withManyRuns = async (work: (page: Page) => Promise<void>) => {
    const limits = {
      queued: 20_000,
      queued_per_session: 20_000,
      running: 64,
      running_per_session: 64,
      retention_runs: 20_000,
    };
    const hooks = createServiceWithRoutes(
      { agent: async () => ({ response: "" }), store: createMemoryStore(), config: { hooks_token: TOKEN, limits } },
      (context) => webRoutes(context, { models: [] }),
    );
    const server = createServer({ hooks, port: 0 });
    try {
      for (let i = 1; i <= 10_000; i++) {
        await hooks.runs.start({
          origin: "agent",
          message: "m",
          sessionKey: "hook:ingress",
          name: `run ${String(i).padStart(5, "0")}`,
        });
      }
      const { url } = await server.listen();
      const { page } = await open(url);
      await enterToken(page);
      await row(page, "run 10000").waitFor();
      const list = page.locator(".virtual");
      const size = async () => Number(await page.locator(".virtual li").first().getAttribute("aria-setsize"));
      const scrollToEnd = () => list.evaluate((view) => (view as unknown as Scroller).scrollTo(0, 1e9));
      await until(async () => {
        await scrollToEnd();
        return (await size()) === 10_000;
      }, "the whole list");
      // its last part may have come behind the place that was the end
      await scrollToEnd();
      await row(page, "run 00001").waitFor();
      await work(page);
    } finally {
      await server.close(0);
    }
  };

  it("10,000 runs: the document holds the seen rows alone, and keys reach both ends", () =>
    withManyRuns(async (page) => {
      assert.ok((await page.locator(".virtual li").count()) < 60);
      const focused = page.locator(".virtual a:focus");
      await page.locator(".virtual a").last().focus();
      await page.keyboard.press("Home");
      await focused.filter({ hasText: "run 10000" }).waitFor();
      await page.keyboard.press("ArrowDown");
      await focused.filter({ hasText: "run 09999" }).waitFor();
      await page.keyboard.press("End");
      await focused.filter({ hasText: "run 00001" }).waitFor();
    }));

  it("10,000 runs: scroll at the pace of the screen @long", () =>
    withManyRuns(async (page) => {
      const passes: number[] = [];
      for (let i = 0; i < 3; i++) passes.push(await page.locator(".virtual").evaluate(scrollThrough));
      console.log(`median frame while scrolling: ${passes.map((ms) => ms.toFixed(1)).join(", ")} ms`);
      assert.ok(Math.min(...passes) < 34, `${passes}`);
    }));
});

/** Runs in the page: scrolls 1,200 px a frame for 90 frames; returns the median time of a frame, ms. */
async function scrollThrough(view: unknown): Promise<number> {
  const list = view as Scroller;
  const nextFrame = () =>
    new Promise<number>((resolve) => (globalThis as unknown as Frames).requestAnimationFrame(resolve));
  const times: number[] = [];
  let before = await nextFrame();
  for (let frame = 0; frame < 90; frame++) {
    list.scrollTo(0, 1200 * frame);
    const now = await nextFrame();
    times.push(now - before);
    before = now;
  }
  return times.sort((a, b) => a - b)[times.length / 2]!;
}
