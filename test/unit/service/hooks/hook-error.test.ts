import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createS3Files } from "latentkit/hooks";
import type { Agent } from "#src/service/agent/agent.js";
import type { HookErrorKind } from "#src/service/hooks/hook-error.js";
import type { RunFile } from "#src/service/hooks/run.js";
import { createSqliteStore } from "#src/service/hooks/store/sqlite/sqlite-store.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { failWrites, faultyDriver } from "../../../helpers/hooks/faulty-driver.js";
import { bearer, serviceStarter, TOKEN, until } from "../../../helpers/hooks/hook-service.js";
import type { OfOneApi } from "../../../helpers/hooks/refusals.js";
import { RawClient, requestText } from "../../../helpers/http/raw-http.js";

const WAIT = { prefer: "wait=30" };
const ID = "a5a5a5a5-0000-4000-8000-000000000000";
const hold = { message: "hold" };

describe("refusals of hooks", () => {
  const start = serviceStarter();
  const folder = temporaryFolder();
  type Config = NonNullable<NonNullable<Parameters<typeof start>[0]>["config"]>;
  const posted = async (body: unknown, config: Config = {}, headers: Record<string, string> = {}) =>
    (await start({ config })).post("/hooks/agent", body, headers);
  const got = async (path: string, init: RequestInit = { headers: bearer }) => fetch((await start()).url + path, init);
  /** The last of several equal requests. */
  const repeated = async (count: number, config: Config, body: object, headers: Record<string, string> = {}) => {
    const { post } = await start({ config });
    for (let i = 1; i < count; i++) await post("/hooks/agent", body, headers);
    return post("/hooks/agent", body, headers);
  };
  /** A request that waits for its run, of which the test makes an end. */
  const ended = async (
    end: (service: Awaited<ReturnType<typeof start>>, id: string) => unknown,
    body: object = hold,
  ) => {
    const service = await start();
    const waiting = service.post("/hooks/agent", body, WAIT);
    await until(() => service.hooks.runs.stats().running === 1 && service.hooks.runs.stats().followed === 1);
    const { runs } = await service.hooks.runs.list({ limit: 1 });
    await end(service, runs[0]!.id);
    return waiting;
  };

  /** For each kind a request, and the whole of what its client reads. */
  const LINES: Record<Exclude<HookErrorKind, OfOneApi>, readonly [request: () => Promise<Response>, told: string]> = {
    unauthorized: [() => got("/api/runs", {}), "401 unauthorized: unauthorized"],
    hooks_not_configured: [
      () => posted({ message: "x" }, { hooks_token: " " }),
      "503 hooks_not_configured: hooks token is not configured",
    ],
    session_key_override_disabled: [
      () => posted({ message: "x", sessionKey: "a" }),
      '400 session_key_override_disabled: sessionKey override is disabled: "sessionKey" needs hooks_allow_request_session_key: true (channels.web of the configuration)',
    ],
    session_key_prefix_denied: [
      () =>
        posted(
          { message: "x", sessionKey: "a" },
          { hooks_allow_request_session_key: true, hooks_allowed_session_key_prefixes: ["hook:"] },
        ),
      '400 session_key_prefix_denied: sessionKey is not allowed by configured prefixes: "sessionKey" must begin with one of hooks_allowed_session_key_prefixes, "hook:" (channels.web of the configuration)',
    ],
    invalid_request: [() => posted({ message: 5 }), "400 invalid_request: message: expected a string"],
    request_timeout: [
      async () => {
        const { port } = await start({ config: { limits: { header_seconds: 1 } } });
        const client = new RawClient(port);
        const headers = [`Authorization: Bearer ${TOKEN}`, "Content-Type: application/json", "Content-Length: 15"];
        const { status, body } = await client.send(requestText("POST /hooks/agent", headers)).response();
        client.destroy();
        return new Response(body, { status });
      },
      "408 invalid_request: the request took too long to arrive",
    ],
    unsupported_media_type: [
      () => posted("message=x", {}, { "content-type": "text/plain" }),
      "415 unsupported_media_type: the body must be JSON in UTF-8 (Content-Type: application/json)",
    ],
    payload_too_large: [
      () => posted({ message: "a quiet lake" }, { limits: { body_bytes: 16 } }),
      "413 payload_too_large: the body is too large: expected at most 16 bytes",
    ],
    rate_limited: [
      () => repeated(2, { limits: { starts_per_10s: 1 } }, { message: "x" }),
      "429 rate_limited: too many starts, try again later",
    ],
    auth_rate_limited: [
      () => repeated(2, { limits: { failed_auth_per_minute: 1 } }, { message: "x" }, { authorization: "Bearer no" }),
      "429 auth_rate_limited: too many failed attempts, try again later",
    ],
    queue_full: [
      () => repeated(2, { limits: { running: 1, queued: 0 } }, hold),
      "429 queue_full: the queue of this service is full, try again later",
    ],
    idempotency_mismatch: [
      async () => {
        const { post } = await start();
        await post("/hooks/agent", { message: "x" }, { "idempotency-key": "k" });
        return post("/hooks/agent", { message: "y" }, { "idempotency-key": "k" });
      },
      "422 idempotency_mismatch: this idempotency key was used with another payload",
    ],
    run_failed: [
      async () => {
        const agent: Agent = () => Promise.reject(new Error("The paint ran out."));
        return (await start({ agent })).post("/hooks/agent", { message: "x" }, WAIT);
      },
      "500 run_failed: The paint ran out.",
    ],
    run_cancelled: [
      () => ended(({ post }, id) => post(`/api/runs/${id}/cancel`, "")),
      "409 run_cancelled: the run was cancelled",
    ],
    run_timed_out: [
      () => ended(() => undefined, { ...hold, timeoutSeconds: 1 }),
      "504 run_timed_out: The run took longer than 1 s.",
    ],
    run_interrupted: [
      () => ended(({ hooks }) => void hooks.close(0)),
      "503 run_interrupted: The service stopped while the run was running.",
    ],
    run_expired: [
      async () => {
        const { post } = await start({ config: { limits: { running: 1, queue_seconds: 1 } } });
        await post("/hooks/agent", hold);
        return post("/hooks/agent", { message: "x" }, WAIT);
      },
      "503 run_expired: The run waited in the queue for more than 1 s.",
    ],
    run_not_found: [() => got(`/api/runs/${ID}`), "404 run_not_found: no such run"],
    group_not_found: [() => got(`/api/groups/${ID}/stream`), "404 group_not_found: no such group"],
    delivery_not_found: [() => got("/api/webhooks/deliveries/7"), "404 delivery_not_found: no such delivery"],
    method_not_allowed: [() => got("/hooks/agent"), "405 method_not_allowed: method not allowed"],
    not_found: [() => got("/hooks/agents"), "404 not_found: not found"],
    shutting_down: [
      async () => {
        const { hooks, post } = await start();
        await post("/hooks/agent", hold);
        void hooks.close(5);
        return post("/hooks/agent", { message: "x" });
      },
      "503 shutting_down: the service is shutting down",
    ],
    store_unavailable: [
      async () => {
        const driver = faultyDriver();
        let isFull = false;
        failWrites(driver, () => isFull);
        const { post } = await start({ store: createSqliteStore(join(folder(), "store.db"), { driver }) });
        isFull = true;
        return post("/hooks/agent", { message: "x" });
      },
      "503 internal: the store is not available, try again later",
    ],
    files_unavailable: [
      async () => {
        const agent: Agent = async (_, { addFile }) => {
          writeFileSync(join(folder(), "lake.txt"), "a lake");
          return { response: addFile({ path: join(folder(), "lake.txt") }).url };
        };
        const { open } = createS3Files({
          url: "s3://renders/x?endpoint=http://127.0.0.1:1&region=us-east-1",
          credentials: async () => ({ accessKeyId: "a", secretAccessKey: "b" }),
        });
        const put = async (_: string, file: RunFile) => ({ ...file, path: "s3://renders/x/lake.txt" });
        const { post, get } = await start({ agent, files: { put, open } });
        const run = (await (await post("/hooks/agent", { message: "x" }, WAIT)).json()) as { response: string };
        return get(run.response);
      },
      "503 internal: the files are not available, try again later",
    ],
    internal: [
      async () => {
        const check = () => {
          throw new Error("a secret");
        };
        const agent = Object.assign(async () => ({ response: "" }), { check });
        return (await start({ agent })).post("/hooks/agent", { message: "x" });
      },
      "500 internal: internal error",
    ],
  };

  for (const kind of Object.keys(LINES) as (keyof typeof LINES)[]) {
    it(`${kind}: the whole of what a client reads`, async () => {
      const [request, told] = LINES[kind];
      const response = await request();
      const { ok, error, code, request_id } = (await response.json()) as Record<string, unknown>;
      assert.deepEqual([ok, typeof request_id], [false, "string"]);
      assert.equal(`${response.status} ${code}: ${error}`, told);
    });
  }
});
