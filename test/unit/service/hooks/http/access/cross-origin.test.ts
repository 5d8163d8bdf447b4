import assert from "node:assert/strict";
import WebSocket from "ws";
import { HookError } from "#src/service/hooks/hook-error.js";
import { refuseForeign } from "#src/service/hooks/http/access/cross-origin.js";
import { classicStarter, quick } from "../../../../../helpers/hooks/classic-service.js";
import { bearer, serviceStarter, TOKEN } from "../../../../../helpers/hooks/hook-service.js";

const PAGE = "https://gallery.example.com";
const page = { origin: PAGE };
const allowed_origins = [PAGE, "http://localhost:5173"];

describe("pages of allowed origins", () => {
  const start = serviceStarter();
  const startClassic = classicStarter();

  const ask = (url: string, method: string, headers: Record<string, string> = page) =>
    fetch(url, {
      method: "OPTIONS",
      headers: { ...headers, "access-control-request-method": method, "access-control-request-headers": "x" },
    });
  const allowed = ({ headers }: Response, name: string) =>
    headers.get(`access-control-${name}`)?.toLowerCase().split(", ") ?? [];

  it("may send requests with the headers that clients need, at every door", async () => {
    const { url } = await startClassic({ web: { allowed_origins, comfy_api: true } });
    for (const [path, method] of [
      ["/hooks/agent", "POST"],
      ["/api/stream?run_id=x", "GET"],
      ["/api/runs/x/cancel", "POST"],
      ["/api/v2/jobs", "POST"],
      ["/api/v2/assets/x", "DELETE"],
      ["/prompt", "POST"],
      ["/api/upload/image", "POST"],
      ["/metrics", "GET"],
    ] as const) {
      const response = await ask(url + path, method);
      assert.equal(response.status, 204, path);
      assert.equal(response.headers.get("access-control-allow-origin"), PAGE);
      assert.equal(response.headers.get("access-control-allow-credentials"), null);
      assert.equal(response.headers.get("vary"), "Origin");
      assert.ok(allowed(response, "allow-methods").includes(method.toLowerCase()), path);
      const headers = allowed(response, "allow-headers");
      for (const name of [
        "authorization",
        "content-type",
        "idempotency-key",
        "if-range",
        "last-event-id",
        "prefer",
        "x-compat-token",
      ])
        assert.ok(headers.includes(name), name);
    }
  });

  it("read responses, refusals and streams, and need the token as before", async () => {
    const { url, post, get, start: run } = await start({ config: { allowed_origins } });
    const accepted = await post("/hooks/agent", { message: "x" }, page);
    assert.equal(accepted.status, 200);
    const { run_id } = await run("x");
    const refused = await fetch(`${url}/hooks/agent`, { method: "POST", headers: page });
    assert.equal(refused.status, 401);
    assert.equal(refused.headers.get("vary"), "Origin, Accept");
    const stream = await get(`/api/stream?run_id=${run_id}`, page);
    assert.match(await stream.text(), /event: done/);
    const missing = await get("/api/runs/none", page);
    const waited = await post("/hooks/agent", { message: "x" }, { ...page, prefer: "wait=9" });
    assert.equal(waited.headers.get("vary"), "Origin, Accept, Prefer");
    for (const response of [accepted, refused, stream, missing, waited]) {
      assert.equal(response.headers.get("access-control-allow-origin"), PAGE);
      const exposed = allowed(response, "expose-headers");
      for (const name of ["location", "retry-after", "idempotent-replayed", "x-request-id"])
        assert.ok(exposed.includes(name), name);
    }
  });

  it("of the classic API: requests and WebSockets pass; those of others are refused as before", async () => {
    const { url, post, port } = await startClassic({ web: { allowed_origins } });
    assert.equal((await post("/prompt", { prompt: quick() }, page)).status, 200);
    assert.equal((await post("/prompt", { prompt: quick() }, { origin: "https://example.com" })).status, 403);
    const { status } = await fetch(`${url}/prompt`, { method: "POST", headers: page, body: "{}" });
    assert.equal(status, 401);
    const open = (origin: string, headers: Record<string, string>) =>
      new Promise<string>((resolve) => {
        const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, { origin, headers });
        socket.once("open", () => resolve("open")).once("error", ({ message }) => resolve(message));
        socket.once("open", () => socket.close());
      });
    assert.equal(await open(PAGE, bearer), "open");
    assert.match(await open(PAGE, {}), /401/);
    assert.match(await open("https://example.com", bearer), /403/);
    assert.match(await open(`${PAGE}:8443`, bearer), /403/);
  });

  it("other origins, and services without any, see no header of CORS", async () => {
    const config = { hooks_token: TOKEN };
    const [none, some] = [await start({ config }), await start({ config: { ...config, allowed_origins } })];
    for (const [{ url, get }, origin] of [
      [none, PAGE],
      [some, "https://example.com"],
      [some, `${PAGE}.example.com`],
      [some, "null"],
      [some, "http://localhost:5174"],
    ] as const) {
      const asked = await ask(`${url}/hooks/agent`, "POST", { origin });
      assert.equal(asked.status, 405);
      const response = await get("/api/runs", { origin });
      assert.equal(response.status, 200);
      for (const { headers } of [asked, response]) {
        assert.deepEqual(
          [...headers.keys()].filter((name) => name.startsWith("access-control-")),
          [],
        );
      }
    }
    // a cache must not hand the response of one origin to another
    assert.equal((await some.get("/api/runs")).headers.get("vary"), "Origin");
    assert.equal((await none.get("/api/runs")).headers.get("vary"), null);
  });

  it("OPTIONS that asks nothing, and unknown paths, are refused as before", async () => {
    const { url } = await start({ config: { allowed_origins } });
    assert.equal((await fetch(`${url}/hooks/agent`, { method: "OPTIONS", headers: page })).status, 405);
    assert.equal((await ask(`${url}/nothing`, "GET")).status, 404);
  });
});

describe("origin guard of the classic API", () => {
  const passes = (headers: Record<string, string>, web: object = {}, access: "open" | "token" = "token") => {
    try {
      refuseForeign({ web: { allowed_origins: [], ...web } } as never, { headers } as never, access);
      return true;
    } catch (error) {
      assert.ok(error instanceof HookError);
      assert.equal(error.status, 403);
      return false;
    }
  };
  const host = "render.example.com:8188";

  it("a program without Origin passes, and a page of the same host and port", () => {
    assert.ok(passes({ host }));
    assert.ok(passes({ host, origin: `http://${host}`, "sec-fetch-site": "same-origin" }));
    assert.ok(
      passes({ host, origin: "https://gallery.example.com" }, { public_url: "https://gallery.example.com/comfy" }),
    );
  });

  it("pages of other hosts, ports and schemes without host do not", () => {
    const foreign = ["http://render.example.com", "http://evil.example:8188", "null", "", "file://", "none "];
    for (const origin of foreign) assert.equal(passes({ host, origin }), false, origin);
    assert.equal(passes({ origin: "http://evil.example" }), false);
    for (const site of ["cross-site", "same-site"]) assert.equal(passes({ host, "sec-fetch-site": site }), false, site);
  });

  it("allowed origins pass, whole and alone, and change nothing of the Host", () => {
    const web = { allowed_origins: ["https://gallery.example.com"] };
    const headers = { host, "sec-fetch-site": "cross-site" };
    assert.ok(passes({ ...headers, origin: "https://gallery.example.com" }, web));
    for (const origin of [
      "http://gallery.example.com",
      "https://gallery.example.com:8443",
      "https://a.gallery.example.com",
    ])
      assert.equal(passes({ ...headers, origin }, web), false, origin);
    // an image of that page has no Origin
    assert.equal(passes(headers, web), false);
    const rebound = { host: "evil.example", origin: "https://gallery.example.com" };
    assert.equal(passes(rebound, web, "open"), false);
    assert.ok(passes({ ...rebound, host: "127.0.0.1:8188" }, web, "open"));
  });

  it("a proxy's host counts where it is trusted, its last one", () => {
    const headers = { host, origin: "https://out.example", "x-forwarded-host": "evil.example, out.example" };
    assert.equal(passes(headers), false);
    assert.ok(passes(headers, { trust_proxy: true }));
    assert.equal(passes({ ...headers, origin: "https://evil.example" }, { trust_proxy: true }), false);
  });

  it("without a token, the Host needs no resolver", () => {
    for (const own of ["127.0.0.1:8188", "[::1]:8188", "localhost:8188", "192.0.2.7"]) {
      assert.ok(passes({ host: own }, {}, "open"), own);
    }
    for (const name of [host, "localhost.evil.example", "", "127.0.0.1.evil.example"]) {
      assert.equal(passes({ host: name }, {}, "open"), false, name);
    }
    assert.ok(passes({ host }, { public_url: `https://${host}` }, "open"));
  });
});
