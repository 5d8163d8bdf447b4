import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Context } from "mocha";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { skip } from "../skip.js";

const CHROMIUM = "/usr/bin/chromium";
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];
const WIDTHS = [360, 800, 1280];
const HEIGHT = 800;

export const TOKEN = "a-token-that-nobody-prints-0123456789";

/** A tab of Chromium on the page of a service. */
export interface OpenedPage {
  readonly page: Page;
  /** Errors that the tab has reported: of scripts, and of the security policy. */
  readonly errors: readonly string[];
  /** Addresses of all requests. */
  readonly requests: readonly string[];
}

/**
 * Opens tabs and closes them after the test. They share a context and its window, which take longer to make than most tests
 * last; each service is an origin of its own. Call inside `describe`.
 */
export function pageOpener(): (url: string, options?: { scheme?: "light" | "dark" }) => Promise<OpenedPage> {
  let browser: Browser;
  let context: BrowserContext;
  /** A window lasts as long as a tab in it. */
  let kept: Page;
  before(async function (this: Context) {
    if (!existsSync(CHROMIUM)) skip(this, `${CHROMIUM} is not installed`);
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
    context = await browser.newContext({
      viewport: { width: 1280, height: HEIGHT },
      locale: "en-GB",
      timezoneId: "UTC",
    });
    context.setDefaultTimeout(240_000);
    kept = await context.newPage();
  });
  after(() => browser?.close());
  afterEach(async () => {
    for (const page of context.pages()) if (page !== kept) await page.close();
  });
  return async (url, { scheme = "light" } = {}) => {
    const page = await context.newPage();
    await page.emulateMedia({ colorScheme: scheme });
    const errors: string[] = [];
    const requests: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    // a refused response, or a missing service, is not a fault of the page
    page.on("console", (line) => {
      if (line.type() === "error" && !line.text().startsWith("Failed to load resource")) errors.push(line.text());
    });
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(url);
    return { page, errors, requests };
  };
}

/** Types the token, and waits until the page shows something. */
export async function enterToken(page: Page, token = TOKEN): Promise<void> {
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("dialog").waitFor({ state: "hidden" });
}

const require = createRequire(import.meta.url);
const axeSource = () => readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** Fails if axe finds a violation, in dark or light, or the page is wider than its window, at any of three widths. It is light after that. */
export async function checkAccess(page: Page): Promise<void> {
  await page.evaluate(axeSource());
  const check = async (width: number, colorScheme: "dark" | "light", rules: readonly string[]) => {
    await page.emulateMedia({ colorScheme });
    const { found, wide } = await page.evaluate(inspectAccess, rules);
    assert.deepEqual(found, [], `${width} px, ${colorScheme}`);
    assert.ok(wide <= width, `${wide} px of ${width}`);
  };
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: HEIGHT });
    await check(width, "light", []);
  }
  // the schemes differ in colours alone, and the widest page shows all of them
  await check(WIDTHS.at(-1)!, "dark", ["color-contrast"]);
  await page.emulateMedia({ colorScheme: "light" });
}

/** Runs in the page: these rules of axe, or all. */
async function inspectAccess(rules: readonly string[]): Promise<{ found: string[]; wide: number }> {
  const tab = globalThis as unknown as {
    axe: {
      run(
        options: object,
      ): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }>;
    };
    document: { documentElement: { scrollWidth: number } };
  };
  const { violations } = await tab.axe.run(rules.length === 0 ? {} : { runOnly: rules });
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
  );
  return { found, wide: tab.document.documentElement.scrollWidth };
}
