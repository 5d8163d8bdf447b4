import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { createGraphAgent } from "latentkit/hooks";
import { createServer } from "latentkit/service";
import { REFUSALS } from "#src/service/hooks/hook-error.js";
import { createServiceWithRoutes } from "#src/service/hooks/service.js";
import { webRoutes } from "#src/service/web/routes.js";
import { filesIn, root, temporaryFolder } from "../../../../helpers/folders.js";
import { serviceStarter, TOKEN } from "../../../../helpers/hooks/hook-service.js";

const startService = serviceStarter();

type Json = Record<string, unknown>;

const CONFIG = { incoming: { it: { signature: "github", secrets: "0123456789abcdef", message: "x" } } } as const;
/** Opens every door. */
const ALL = { ...CONFIG, comfy_api: "token", comfy_classic: "token" } as const;

describe("openapi.json", () => {
  const folder = temporaryFolder();
  const agents: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.close();
  });
  const agentOfGraphs = () => {
    const agent = createGraphAgent({ graph: {}, outputDir: folder() });
    agents.push(agent);
    return agent;
  };

  async function document(config: object = ALL): Promise<Json & { paths: Record<string, Record<string, Json>> }> {
    const { url } = await startService({ agent: agentOfGraphs(), config });
    const response = await fetch(`${url}/openapi.json`);
    assert.equal(response.status, 200);
    return (await response.json()) as Json & { paths: Record<string, Record<string, Json>> };
  }

  const operationsOf = ({ paths }: { paths: Record<string, object> }) =>
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`),
    );

  /** Methods and paths of a router, as it says them itself. */
  async function routed(router: unknown, url: string): Promise<string[]> {
    const { stack } = router as { stack: { route?: { path: string[] } }[] };
    const allowed = stack
      .flatMap(({ route }) => route?.path ?? [])
      .map(async (path) => {
        const { status, headers } = await fetch(url + path, { method: "PUT" });
        // a path that is refused as unknown, in the words of its API
        if (status === 404) return [];
        assert.equal(status, 405, path);
        const methods = headers.get("allow")!.split(", ");
        return methods.filter((method) => method !== "HEAD").map((method) => `${method} ${path}`);
      });
    return (await Promise.all(allowed)).flat();
  }

  for (const [doors, config, least] of [
    ["hooks", CONFIG, 25],
    ["every API", ALL, 60],
  ] as const) {
    it(`describes every endpoint of the router with its methods, and no other: ${doors}`, async () => {
      const { hooks, url } = await startService({ agent: agentOfGraphs(), config });
      const inRouter = await routed(hooks.router, url);
      assert.ok(inRouter.length >= least, `${inRouter.length} endpoints`);
      assert.deepEqual(operationsOf(await document(config)).sort(), inRouter.sort());
    });
  }

  it("leaves out the page's own routes alone", async () => {
    const options = { agent: agentOfGraphs(), config: { hooks_token: TOKEN, ...ALL } };
    const hooks = createServiceWithRoutes(options, (context) => webRoutes(context, { models: [] }));
    const server = createServer({ hooks, port: 0 });
    try {
      const { url } = await server.listen();
      const described = new Set(operationsOf(await document()));
      const others = (await routed(hooks.router, url)).filter((endpoint) => !described.has(endpoint));
      assert.ok(others.length >= 10);
      for (const endpoint of others) assert.match(endpoint, /^\w+ (\/|\/page\/:name|\/api\/page\/\w+)$/);
    } finally {
      await server.close(0);
    }
  });

  it("has no path of hooks that no test requests", async () => {
    const folder = join(root, "test/unit/service");
    const tests = filesIn(folder).map((file) => readFileSync(join(folder, file), "utf8"));
    for (const path of Object.keys((await document(CONFIG)).paths)) {
      if (path.startsWith("/hooks/in/") || path.startsWith("/api/hooks/in/")) continue;
      const spelled = path.replace(/[.]/g, "\\.").replace(/\{\w+\}/g, "[^/\"'`\\s]+");
      const requested = new RegExp(`${spelled}["'\`?]`);
      assert.ok(
        tests.some((text) => requested.test(text)),
        `no test requests ${path}`,
      );
    }
  });

  it("passes an independent validator, which refuses a broken document", async () => {
    const doc = await document();
    const verdict = await new Validator().validate(structuredClone(doc));
    assert.deepEqual(verdict.errors ?? [], []);
    assert.equal(verdict.valid, true);
    const broken = { ...doc, paths: { "/x": { get: { responses: 5 } } } };
    assert.equal((await new Validator().validate(broken)).valid, false);
  });

  it("has no dangling reference or repeated operation, and all path parameters", async () => {
    const doc = await document();
    const refs = [...JSON.stringify(doc).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => path!);
    assert.ok(refs.length > 10);
    for (const ref of refs) {
      const target = ref.split("/").reduce<unknown>((at, key) => (at as Json | undefined)?.[key], doc);
      assert.equal(typeof target, "object", ref);
    }
    const operations = Object.values(doc.paths).flatMap((methods) => Object.values(methods));
    const operationIds = operations.map(({ operationId }) => operationId);
    assert.equal(new Set(operationIds).size, operationIds.length);
    for (const [path, methods] of Object.entries(doc.paths)) {
      for (const operation of Object.values(methods)) {
        const described = ((operation.parameters ?? []) as Json[]).filter((p) => p.in === "path").map((p) => p.name);
        assert.deepEqual(
          described,
          [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
          path,
        );
        assert.ok(Object.keys(operation.responses as Json).length > 0);
      }
    }
  });

  it("has the limits and names of the request schemas", async () => {
    const doc = await document();
    const { AgentRequest, RunPayload } = (doc.components as { schemas: Record<string, Json> }).schemas;
    const properties = AgentRequest!.properties as Record<string, Json>;
    assert.equal(properties.message!.maxLength, 131_072);
    assert.deepEqual(AgentRequest!.required, ["message"]);
    assert.ok((RunPayload!.required as string[]).includes("run_id"));
  });

  it("lists every refusal by status", async () => {
    const text = JSON.stringify(await document());
    const told = ["unauthorized", "hooks_not_configured", "idempotency_mismatch", "queue_full", "payload_too_large"];
    for (const kind of told) assert.ok(text.includes(REFUSALS[kind as keyof typeof REFUSALS].sentence), kind);
  });
});
