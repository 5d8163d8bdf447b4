import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createGraphAgent, createHookService, type HookService } from "latentkit/hooks";
import type { Agent } from "#src/service/agent/agent.js";
import { createPostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { startWorkerProcess } from "#src/service/worker/start-worker.js";
import { startWorker } from "#src/service/worker/worker.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { tinyModels } from "../../../helpers/models/tiny-host.js";
import { newDatabase, postgres } from "../../../helpers/postgres/cluster.js";

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const library = JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href);
/** A node that never lets go of its thread. */
const SPINS = `
  import { createRegistry, defineNode, int, registry, text } from ${library};
  const spins = defineNode({ key: "spins", inputs: { ms: int({ max: 1e6 }), message: text() }, outputs: {}, outputNode: true,
    run: ({ ms }) => { for (const end = performance.now() + ms; performance.now() < end; ); return {}; } });
  export default () => ({ registry: createRegistry([spins], registry) });`;
const LEASE_SECONDS = 3;

describe("workers with models", () => {
  postgres();
  const folder = temporaryFolder();
  const open: { close(drainSeconds?: number): Promise<void> }[] = [];
  afterEach(async () => {
    for (const part of open.splice(0).reverse()) await part.close(0);
  });
  const front = (url: string): HookService => {
    const store = createPostgresStore({ url });
    const agent: Agent = async () => ({ response: "" });
    const service = createHookService({ agent, store, config: {}, workers: true, logger: silent });
    open.push(service);
    return service;
  };
  const endOf = async ({ runs }: HookService, message: string) => {
    const { runId } = await runs.start({ origin: "agent", message, sessionKey: "s" });
    const events = [];
    for await (const slice of runs.follow(runId, 0)) events.push(...slice.events.map(({ event }) => event));
    return { events, run: await runs.get(runId) };
  };

  it("keep the lease of a run whose node takes far longer, which starts once @long", async () => {
    const url = await newDatabase();
    const service = front(url);
    writeFileSync(join(folder(), "setup.mjs"), SPINS);
    const graph = { 1: { class_type: "spins", inputs: { ms: 4 * LEASE_SECONDS * 1000, message: "{{message}}" } } };
    for (const name of ["one", "two"]) {
      const agent = createGraphAgent({
        graph,
        outputDir: join(folder(), name),
        models: { folders: tinyModels() },
        threads: 1,
        setup: pathToFileURL(join(folder(), "setup.mjs")),
      });
      const store = createPostgresStore({ url });
      open.push(agent, await startWorker({ agent, store, leaseSeconds: LEASE_SECONDS, logger: silent }));
    }
    const { events, run } = await endOf(service, "a fox");
    assert.deepEqual([run.state, run.attempt], ["succeeded", 1]);
    assert.deepEqual(
      events.filter((event) => event === "node_start"),
      ["node_start"],
    );
  });

  it("render checkpoints in threads, and refuse folders that do not exist", async () => {
    const url = await newDatabase();
    const service = front(url);
    const source = JSON.parse(readFileSync(join(root, "test/graphs/sampling/text-to-image.json"), "utf8"));
    Object.assign(source[4].inputs, { width: 64, height: 64 });
    source[5].inputs.steps = 2;
    const graph = join(folder(), "graph.json");
    writeFileSync(graph, JSON.stringify(source));
    const config = { store: url, output_dir: join(folder(), "out"), models: [tinyModels()], agent: { graph } };
    const options = { log: () => undefined };
    await refuses(
      startWorkerProcess({ ...config, models: [join(folder(), "none")] }, options),
      "config.invalid",
      /none/,
    );
    open.push(await startWorkerProcess(config, options));
    const { run } = await endOf(service, "{}");
    assert.deepEqual([run.state, run.error], ["succeeded", null]);
    assert.equal(filesIn(join(folder(), "out")).length, 1);
  });
});
