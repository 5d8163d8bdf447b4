import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parseConfig } from "#src/render/config/config.js";
import { systemClock } from "#src/service/hooks/clock.js";
import { createHookService } from "#src/service/hooks/create-hook-service.js";
import { createPostgresStore, type PostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { NO_EVENTS } from "#src/service/hooks/store/queue-store.js";
import { Deliverer } from "#src/service/hooks/webhooks/deliverer.js";
import { createEndpoints, receiversOfEnd } from "#src/service/hooks/webhooks/endpoints.js";
import { startWorker } from "#src/service/worker/worker.js";
import { until } from "../../../../../helpers/hooks/hook-runs.js";
import { newRun } from "../../../../../helpers/hooks/new-run.js";
import { newSchema, postgres } from "../../../../../helpers/postgres/cluster.js";

const KEEP = { events: 10, bytes: 1000 };
const RUNS = 60;
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

describe("deliveries of the PostgreSQL store", () => {
  const url = postgres();
  const open: PostgresStore[] = [];
  afterEach(async () => {
    for (const store of open.splice(0)) await store.close();
  });

  it("go out once each, while several processes whose clocks differ by ten minutes deliver them", async () => {
    const schema = newSchema();
    const create = () => {
      const store = createPostgresStore({ url, schema, connections: 3 });
      open.push(store);
      return store;
    };
    const ids: string[] = [];
    const receiver = createServer((req, res) => {
      ids.push(String(req.headers["webhook-id"]));
      req.resume();
      setTimeout(() => res.writeHead(204).end(), 5);
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const { port } = receiver.address() as AddressInfo;
    const secrets = `whsec_${Buffer.alloc(24).toString("base64")}`;
    const config = parseConfig(
      {
        channels: {
          web: { webhooks: { shop: { url: `http://127.0.0.1:${port}/`, secrets, allow_networks: ["127.0.0.1"] } } },
        },
      },
      "test",
    );
    const endpoints = createEndpoints(config.channels.web.webhooks);
    const deliverers = [-600_000, 0, 600_000].map((skew) => {
      const store = create();
      const mark = () => Date.now() + skew;
      const { limits } = config;
      const opened = () => store.open();
      return new Deliverer({
        endpoints,
        store,
        clock: systemClock,
        mark,
        limits,
        log,
        opened,
        bodyOf: async () => "{}",
      });
    });
    const store = create();
    const common = { createdAt: 1, createdMark: 1 };
    for (let n = 0; n < RUNS; n++) {
      const id = `r${n}`;
      await store.createRun(newRun(id, { sessionKey: `s${n % 7}`, ...common }));
      const terminal = { event: "done", data: "{}" };
      const receivers = receiversOfEnd(endpoints, "cancelled");
      const ending = { from: ["queued"], to: "cancelled", finishedAt: 1, endedMark: 1, error: null } as const;
      await store.endRun(id, { ...ending, terminal, receivers }, NO_EVENTS, KEEP);
      for (const deliverer of deliverers) deliverer.wake();
    }
    try {
      await until(async () => (await store.listDeliveries(null, 99, { state: "delivered" })).length === RUNS, "all");
      assert.deepEqual(ids.sort(), Array.from({ length: RUNS }, (_, n) => `r${n}_cancelled`).sort());
    } finally {
      for (const deliverer of deliverers) await deliverer.stop();
      receiver.close();
      receiver.closeAllConnections();
    }
  });

  it("of runs that workers end are sent by a front end", async () => {
    const schema = newSchema();
    const bodies: { type: string; data: { run_id: string; error_code: string | null } }[] = [];
    const receiver = createServer(async (req, res) => {
      const chunks: Buffer[] = [];
      for await (const chunk of req) chunks.push(chunk as Buffer);
      bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
      res.writeHead(204).end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const { port } = receiver.address() as AddressInfo;
    const secrets = `whsec_${Buffer.alloc(24).toString("base64")}`;
    const webhooks = { shop: { url: `http://127.0.0.1:${port}/`, secrets, allow_networks: ["127.0.0.1"] } };
    const agent = async ({ message }: { message: string }) => {
      if (message === "fail") throw new Error("out of paint");
      return { response: message };
    };
    const config = { hooks_token: "a-token-of-the-tests", webhooks };
    const shared = () => createPostgresStore({ url, schema, connections: 3 });
    const front = createHookService({ agent, store: shared(), config, workers: true, logger: log });
    const worker = await startWorker({ agent, store: shared(), webhooks, logger: log });
    try {
      const start = async (message: string) =>
        (await front.runs.start({ origin: "agent", message, sessionKey: "s" })).runId;
      const [good, bad] = [await start("a lake"), await start("fail")];
      await until(async () => bodies.length === 2, "both webhooks");
      assert.deepEqual(bodies.map(({ type, data }) => [type, data.run_id, data.error_code]).sort(), [
        ["run.failed", bad, "agent_failed"],
        ["run.succeeded", good, null],
      ]);
    } finally {
      await worker.close(0);
      await front.close(0);
      receiver.close();
      receiver.closeAllConnections();
    }
  });

  it("of a process that was lost in the middle are due again when its lease ends", async () => {
    const store = createPostgresStore({ url, schema: newSchema() });
    open.push(store);
    const common = { createdAt: 1, createdMark: 1 };
    await store.createRun(newRun("r1", { sessionKey: "s", ...common }));
    const ending = { from: ["queued"], to: "cancelled", finishedAt: 1, endedMark: 1, error: null } as const;
    const receivers = [{ endpoint: "shop", target: "t", sessionPrefix: "" }];
    await store.endRun("r1", { ...ending, terminal: { event: "done", data: "{}" }, receivers }, NO_EVENTS, KEEP);
    const claim = { endpoints: [{ endpoint: "shop", count: 1 }], leaseMs: 200, nowMark: 0 };
    assert.equal((await store.claimDeliveries(claim)).length, 1);
    assert.equal((await store.claimDeliveries(claim)).length, 0);
    await until(async () => (await store.claimDeliveries(claim)).length === 1, "the end of the lease");
    assert.equal(await store.settleDelivery(1, 1, { state: "delivered", nowMark: 0 }), false);
    assert.equal(await store.settleDelivery(1, 2, { state: "delivered", nowMark: 0 }), true);
  });
});
