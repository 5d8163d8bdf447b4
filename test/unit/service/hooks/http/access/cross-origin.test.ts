import assert from "node:assert/strict";
import WebSocket from "ws";
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
