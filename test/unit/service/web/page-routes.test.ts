import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHookService } from "latentkit/hooks";
import { createLogger, createServer } from "latentkit/service";
import { createServiceWithRoutes } from "#src/service/hooks/service-with-routes.js";
import { pageRoutes } from "#src/service/web/page-routes.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { pageServiceStarter } from "../../../helpers/page/page-service.js";

const agent = async () => ({ response: "" });
// without a token it would warn
const logger = createLogger({ level: "silent" });

describe("page routes", () => {
  const folder = temporaryFolder();
  const { start } = pageServiceStarter();

  it("page: open to all, by a strict policy, at most 80 kB of compressed script", async () => {
    const { url } = await start();
    const response = await fetch(url);
    assert.equal(response.status, 200);
    const policy = response.headers.get("content-security-policy")!;
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    assert.doesNotMatch(policy, /unsafe|\*|http/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.equal(response.headers.get("referrer-policy"), "no-referrer");
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.equal(response.headers.get("cache-control"), "no-cache");
    const html = await response.text();
    const names = [...html.matchAll(/(?:src|href)="\.\/(page\/[^"]+)"/g)].map(([, name]) => name!);
    assert.ok(names.length >= 3);
    for (const name of names) {
      assert.match(name, /-[\w-]{8}\.\w+$/);
      const file = await fetch(`${url}/${name}`, { headers: { "Accept-Encoding": "gzip" } });
      assert.equal(file.status, 200);
      assert.equal(file.headers.get("cache-control"), "public, max-age=31536000, immutable");
      assert.equal(file.headers.get("content-encoding"), "gzip");
      assert.ok(Number(file.headers.get("content-length")) < 80_000);
    }
  });

  it("other methods and names are refused; HEAD has no body", async () => {
    const { url } = await start();
    assert.equal((await fetch(url, { method: "POST" })).status, 405);
    assert.equal(await (await fetch(url, { method: "HEAD" })).text(), "");
    for (const name of ["nothing.js", "..%2Findex.html", "%2e%2e%2fpackage.json", "__proto__"]) {
      assert.equal((await fetch(`${url}/page/${name}`)).status, 404, name);
    }
  });

  it("page: false closes it, and a router of one's own has none", async () => {
    const { url } = await start({ page: false });
    assert.equal((await fetch(url)).status, 404);
    assert.equal((await fetch(`${url}/api/page/about`)).status, 404);
    const hooks = createHookService({ agent, logger, config: {} });
    const server = createServer({ hooks, port: 0 });
    assert.equal((await fetch((await server.listen()).url)).status, 404);
    await server.close(0);
  });

  it("page that is not built: says what to run; only files of known types are served", async () => {
    for (const isBuilt of [false, true]) {
      if (isBuilt) {
        mkdirSync(join(folder(), "page"));
        writeFileSync(join(folder(), "index.html"), "<!doctype html>");
        writeFileSync(join(folder(), "page/a.exe"), "");
        writeFileSync(join(folder(), "page/a.js"), "1");
      }
      const hooks = createServiceWithRoutes({ agent, logger, config: {} }, () => pageRoutes(folder()));
      const server = createServer({ hooks, port: 0 });
      const { url } = await server.listen();
      const response = await fetch(url);
      assert.equal(response.status, isBuilt ? 200 : 404);
      if (!isBuilt) assert.match(await response.text(), /npm run build/);
      assert.equal((await fetch(`${url}/page/a.js`)).status, isBuilt ? 200 : 404);
      assert.equal((await fetch(`${url}/page/a.exe`)).status, 404);
      await server.close(0);
    }
  });
});
