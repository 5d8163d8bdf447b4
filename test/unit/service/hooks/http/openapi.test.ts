import assert from "node:assert/strict";
import { Validator } from "@seriousme/openapi-schema-validator";
import { REFUSALS } from "#src/service/hooks/hook-error.js";
import { serviceStarter } from "../../../../helpers/hooks/hook-service.js";

const startService = serviceStarter();

type Json = Record<string, unknown>;

const CONFIG = { incoming: { it: { signature: "github", secrets: "0123456789abcdef", message: "x" } } } as const;

async function document(): Promise<Json & { paths: Record<string, Record<string, Json>> }> {
  const { url } = await startService({ config: CONFIG });
  const response = await fetch(`${url}/openapi.json`);
  assert.equal(response.status, 200);
  return (await response.json()) as Json & { paths: Record<string, Record<string, Json>> };
}

describe("openapi.json", () => {
  it("describes every endpoint of the router with its methods, and no other", async () => {
    // the page and the APIs of ComfyUI are doors of their own, which this service has not opened
    const { hooks, url } = await startService({ config: CONFIG });
    const { stack } = hooks.router as unknown as { stack: { route?: { path: string[] } }[] };
    const routed = await Promise.all(
      stack
        .flatMap(({ route }) => route?.path ?? [])
        .map(async (path) => {
          const { status, headers } = await fetch(url + path, { method: "PUT" });
          assert.equal(status, 405, path);
          const methods = headers.get("allow")!.split(", ");
          return methods.filter((method) => method !== "HEAD").map((method) => `${method} ${path}`);
        }),
    );
    assert.ok(routed.length >= 20);
    const { openapi, paths } = await document();
    assert.equal(openapi, "3.1.0");
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`),
    );
    assert.deepEqual(described.sort(), routed.flat().sort());
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
