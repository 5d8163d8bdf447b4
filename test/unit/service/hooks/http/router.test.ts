import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import express, { type Express } from "express";
import { createHookService, type HookConfigInput, type HookService } from "latentkit/hooks";
import { createLogger } from "latentkit/service";
import { bearer, scriptedAgent, serviceStarter, TOKEN } from "../../../../helpers/hooks/hook-service.js";
import { rawRequest, requestText } from "../../../../helpers/http/raw-http.js";

const startService = serviceStarter();

const ID = "00000000-0000-4000-8000-000000000000";
const AUTH = `Authorization: Bearer ${TOKEN}`;

describe("paths", () => {
  for (const path of [
    "/hooks/agent/",
    "/hooks/Agent",
    "/HOOKS/AGENT",
    "//hooks/agent",
    "/hooks//agent",
    "/hooks/%61gent",
    "/hooks%2fagent",
    "/hooks/agent;a=b",
    "/hooks/agent%00",
    "/hooks/agent%20",
    "/hooks/agent/..",
    "/hooks/./agent",
    "/hooks",
    "/api/hooks/agent/",
    "/api/Hooks/wake",
    "/api/stream/",
    "/api/runs/",
    `/api/runs/${ID}/`,
    `/api/runs/${ID}/cancel/`,
    "/api/runs/%zz",
    `/api/runs/${ID}/files/`,
    `/api/runs/${ID}/files/a/b`,
    "/Health",
    "/metrics/",
    "/",
    "/favicon.ico",
    "/%",
    "/.%2e/etc/passwd",
  ]) {
    it(`${path} is a JSON 404`, async () => {
      const { port } = await startService();
      for (const method of ["POST", "GET"]) {
        const response = await rawRequest(
          port,
          requestText(`${method} ${path}`, [AUTH, "Content-Type: application/json"]),
        );
        const { ok, code, request_id } = JSON.parse(response.body);
        assert.deepEqual([response.status, ok, code], [404, false, "not_found"], `${method} ${path}`);
        assert.equal(request_id, response.headers["x-request-id"]);
        assert.match(response.headers["content-type"]!, /^application\/json/);
        assert.equal(response.headers["x-powered-by"], undefined);
      }
    });
  }

  it("an absolute request target counts as its path", async () => {
    const { port } = await startService();
    const text = requestText(
      `POST http://127.0.0.1/hooks/agent`,
      [AUTH, "Content-Type: application/json"],
      '{"message":"x"}',
    );
    assert.equal((await rawRequest(port, text)).status, 200);
  });
});

describe("methods", () => {
  const wrong: [string, string, string][] = [
    ["GET", "/hooks/agent", "POST"],
    ["PUT", "/api/hooks/agent", "POST"],
    ["DELETE", "/hooks/wake", "POST"],
    ["OPTIONS", "/hooks/wake", "POST"],
    ["PROPFIND", "/hooks/wake", "POST"],
    ["POST", "/api/stream", "GET, HEAD"],
    ["POST", "/api/runs", "GET, HEAD"],
    ["PATCH", `/api/runs/${ID}`, "GET, HEAD"],
    ["GET", `/api/runs/${ID}/cancel`, "POST"],
    ["POST", "/health", "GET, HEAD"],
  ];
  for (const [method, path, allow] of wrong) {
    it(`${method} ${path} is a 405 with Allow: ${allow}, before the token check`, async () => {
      const { port } = await startService({ config: { hooks_token: undefined } });
      const response = await rawRequest(port, requestText(`${method} ${path}`, []));
      assert.equal(response.status, 405);
      assert.equal(response.headers.allow, allow);
      assert.equal(JSON.parse(response.body).code, "method_not_allowed");
    });
  }

  it("HEAD responds like GET, without a body", async () => {
    const { url, start } = await startService();
    const { status_url } = await start("x");
    for (const path of ["/health", "/ready", "/metrics", "/openapi.json", "/api/runs", status_url]) {
      const [get, head] = await Promise.all(
        ["GET", "HEAD"].map((method) => fetch(url + path, { method, headers: bearer })),
      );
      assert.equal(head!.status, 200, path);
      assert.equal(await head!.text(), "");
      assert.equal(head!.headers.get("content-type"), get!.headers.get("content-type"));
    }
    for (const [path, status] of [
      ["/api/runs", 401],
      ["/hooks/agent", 405],
      ["/nothing", 404],
    ] as const) {
      const refused = await fetch(url + path, { method: "HEAD" });
      assert.deepEqual([refused.status, await refused.text()], [status, ""]);
    }
  });
});

describe("problem+json", () => {
  it("is RFC 9457 if the client prefers it", async () => {
    const { url } = await startService();
    for (const accept of [
      "application/problem+json",
      "text/html, Application/Problem+JSON;q=0.5",
      "application/problem+json, application/json",
      "application/json;q=0.5, application/problem+json;q=0.501",
      "application/problem+json; Q = 0.3, application/json;q=0, */*",
      "application/json;q=0.1, application/*, application/problem+json;q=0.2",
    ]) {
      const response = await fetch(`${url}/api/runs`, { headers: { accept } });
      assert.equal(response.headers.get("content-type"), "application/problem+json");
      const { request_id, ...problem } = (await response.json()) as Record<string, unknown>;
      assert.equal(request_id, response.headers.get("x-request-id"));
      assert.deepEqual(problem, {
        type: "about:blank",
        title: "Unauthorized",
        status: 401,
        detail: "unauthorized",
        ok: false,
        error: "unauthorized",
        code: "unauthorized",
      });
    }
  });

  it("is plain JSON otherwise, also for a browser", async () => {
    const { url } = await startService();
    for (const accept of [
      "text/html,*/*;q=0.8",
      "application/problem+json;q=0",
      "application/json",
      "",
      "*/*",
      "application/*",
      "application/problem+json;q=0.000, application/json",
      "application/problem+json;q=0.5, application/json",
      "application/json;q=0.9, application/problem+json;q=0.899",
      "application/problem+json;q=0.9, */*",
      "application/problem+json;q=0.5, application/*;q=0.8, */*;q=0.1",
      "application/problem+json;q=2",
      "application/problem+json;q=-1",
      "application/problem+json;q=abc",
      'text/x;a=", application/problem+json"',
    ]) {
      const response = await fetch(`${url}/no-such-page`, { headers: { accept } });
      assert.match(response.headers.get("content-type")!, /^application\/json/, accept);
    }
  });
});

describe("router in another application", () => {
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });

  /** An Express application with default settings and some of its own. */
  async function mount(
    build: (app: Express, hooks: HookService) => void,
    config: Partial<HookConfigInput> = {},
  ): Promise<string> {
    const hooks = createHookService({
      agent: scriptedAgent,
      logger: createLogger({ level: "silent" }),
      config: { hooks_token: TOKEN, ...config },
    });
    const app = express();
    build(app, hooks);
    const server = createHttpServer(app).listen(0, "127.0.0.1");
    await once(server, "listening");
    closers.push(async () => {
      await hooks.close(0);
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const start = (url: string) =>
    fetch(`${url}/hooks/agent`, {
      method: "POST",
      headers: { ...bearer, "content-type": "application/json" },
      body: '{"message":"x"}',
    });

  it("handles its documented paths and no similar ones", async () => {
    const url = await mount((app, hooks) => {
      app.use(hooks.router);
      app.use((_req, res) => void res.send("mine"));
    });
    assert.equal((await start(url)).status, 200);
    for (const path of [
      "/",
      "/hooksmith",
      "/hooks",
      "/hooks/",
      "/hooks/x",
      "/hooks/agent/",
      "/HOOKS/AGENT",
      "//hooks/agent",
      "/hooks/%61gent",
      "/hooks/agent/x",
      "/api",
      "/api/other",
      "/api/stream/x",
      "/api/runs/",
      "/api/hooks/other",
      `/api/runs/${ID}/`,
      `/api/runs/${ID}/other`,
      `/api/runs/${ID}/files`,
      `/api/runs/${ID}/files/a/b`,
      "/Health",
      "/health/",
      "/metrics/",
      "/openapi",
      "/%",
      "/hooks/%zz",
      "/api/%zz",
    ]) {
      for (const method of ["GET", "POST"]) {
        const response = await fetch(url + path, { method, headers: bearer });
        assert.deepEqual([response.status, await response.text()], [200, "mine"], path);
        assert.equal(response.headers.get("x-request-id"), null, path);
      }
    }
    const undecodable = await fetch(`${url}/api/runs/%zz`, { headers: bearer });
    assert.deepEqual([undecodable.status, ((await undecodable.json()) as { code: string }).code], [404, "not_found"]);
    const wrongMethod = await fetch(`${url}/hooks/agent`, { headers: bearer });
    assert.deepEqual([wrongMethod.status, wrongMethod.headers.get("allow")], [405, "POST"]);
  });

  it("leaves /metrics and /openapi.json to the application if configured", async () => {
    const url = await mount(
      (app, hooks) => {
        app.use(hooks.router);
        app.use((_req, res) => void res.send("mine"));
      },
      { metrics: "none", openapi: "none" },
    );
    for (const path of ["/metrics", "/openapi.json"]) assert.equal(await (await fetch(url + path)).text(), "mine");
    assert.equal((await start(url)).status, 200);
  });

  it("returns URLs that work at its mount path", async () => {
    const url = await mount((app, hooks) => app.use("/deep/er", hooks.router));
    const response = await start(`${url}/deep/er`);
    const { stream_url, status_url } = (await response.json()) as Record<string, string>;
    assert.equal(response.headers.get("location"), status_url);
    assert.match(status_url!, /^\/deep\/er\/api\/runs\//);
    assert.equal((await fetch(url + status_url, { headers: bearer })).status, 200);
    assert.match(await (await fetch(url + stream_url)).text(), /event: done/);
    const { servers } = (await (await fetch(`${url}/deep/er/openapi.json`)).json()) as { servers: unknown };
    assert.deepEqual(servers, [{ url: "/deep/er" }]);
  });

  it("behind a body parser: names the mistake and starts nothing", async () => {
    const url = await mount((app, hooks) => {
      app.use(express.json());
      app.use(hooks.router);
    });
    const response = await start(url);
    const { code, error } = (await response.json()) as Record<string, string>;
    assert.deepEqual([response.status, code], [500, "internal"]);
    assert.match(error!, /already read .* mount the hook router before/);
    const list = (await (await fetch(`${url}/api/runs`, { headers: bearer })).json()) as { runs: unknown[] };
    assert.deepEqual(list.runs, []);
  });

  it("does not depend on the application's settings", async () => {
    const url = await mount((app, hooks) => {
      app
        .set("query parser", "extended")
        .set("json spaces", 8)
        .set("trust proxy", true)
        .set("case sensitive routing", false);
      app.use(hooks.router);
    });
    assert.equal((await start(url)).status, 200);
    const otherCase = await fetch(`${url}/Api/Runs`, { headers: bearer });
    assert.deepEqual([otherCase.status, otherCase.headers.get("x-request-id")], [404, null]);
    const response = await fetch(`${url}/api/stream?run_id[]=a&run_id[__proto__]=b`, { headers: bearer });
    assert.equal(response.status, 400);
    assert.match(await response.text(), /^\{"ok":false/);
  });

  it("works with a server that handles Expect: 100-continue itself", async () => {
    const url = await mount((app, hooks) => app.use(hooks.router));
    const text = requestText(
      "POST /hooks/agent",
      [AUTH, "Content-Type: application/json", "Expect: 100-continue"],
      '{"message":"x"}',
    );
    const { status, body } = await rawRequest(Number(new URL(url).port), text);
    assert.equal(status, 100);
    assert.equal(body.split("100 Continue").length, 1, "one 100 only");
    assert.match(body, /^HTTP\/1\.1 200 OK/);
  });
});
