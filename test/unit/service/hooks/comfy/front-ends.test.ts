import assert from "node:assert/strict";
import { join } from "node:path";
import { Comfy } from "@comfyorg/sdk";
import { createGraphAgent } from "latentkit/hooks";
import { createPostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { startWorker } from "#src/service/worker/worker.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { serviceStarter, TOKEN, until } from "../../../../helpers/hooks/hook-service.js";
import { newSchema, postgres } from "../../../../helpers/postgres/cluster.js";

interface Entry {
  readonly status: { readonly status_str: string };
  readonly outputs: Record<string, { images: Record<string, string>[] }>;
}

describe("Comfy API with front ends and a worker", () => {
  const url = postgres();
  const folder = temporaryFolder();
  const start = serviceStarter();
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
    delete process.env.COMFY_BASE_URL;
  });

  it("any front end takes an upload and a job, and another one has events, outputs and assets", async () => {
    const schema = newSchema();
    const newStore = () => createPostgresStore({ url, schema, connections: 3 });
    const newAgent = () => {
      const graph = {
        1: { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
        2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "hook" } },
      };
      const agent = createGraphAgent({ graph, outputDir: join(folder(), "out"), threads: 1 });
      closers.push(() => agent.close());
      return agent;
    };
    const front = () =>
      start({
        agent: newAgent(),
        store: newStore(),
        workers: true,
        config: { comfy_api: true, comfy_classic: "token" },
      });
    const [one, two] = [await front(), await front()];
    const silent = { debug() {}, info() {}, warn() {}, error() {} };
    const worker = await startWorker({ agent: newAgent(), store: newStore(), logger: silent });
    closers.push(() => worker.close(0));
    const clientOf = (service: typeof one) => {
      process.env.COMFY_BASE_URL = service.url;
      return new Comfy({ apiKey: TOKEN });
    };
    const [first, second] = [clientOf(one), clientOf(two)];
    const workflow = first.workflows.fromJson({
      1: { class_type: "EmptyImage", inputs: { width: 24, height: 16, batch_size: 1, color: 255 } },
      2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "blue" } },
    });
    const job = await first.submit(workflow);
    const seen = await second.jobs.get(job.id);
    await seen.wait();
    assert.equal(seen.status, "succeeded");
    const bytes = await seen.getOutputs("2")[0]!.toBytes();
    // uploaded here, used there
    const asset = first.assets.fromBytes(bytes, { filename: "blue.png", contentType: "image/png" });
    await asset.commit();
    const next = second.workflows.fromJson({
      1: { class_type: "LoadImage", inputs: { image: { __type: "core/ASSET", info: { id: asset.id } } } },
      2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "copy" } },
    });
    const copied = await second.run(next);
    assert.equal(copied.status, "succeeded");
    // the classic API: started here, looked at there
    const prompt = {
      1: { class_type: "LoadImage", inputs: { image: "up.png" } },
      2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "classic" } },
    };
    const form = new FormData();
    form.append("image", new Blob([new Uint8Array(bytes)]), "up.png");
    const headers = { authorization: `Bearer ${TOKEN}` };
    assert.equal((await fetch(`${one.url}/upload/image`, { method: "POST", body: form, headers })).status, 200);
    const { prompt_id: id } = (await (await two.post("/prompt", { prompt, client_id: "me" })).json()) as {
      prompt_id: string;
    };
    const history = async () => (await (await one.get(`/history/${id}`)).json()) as Record<string, Entry>;
    await until(async () => Object.hasOwn(await history(), id), "the entry of the history");
    const { status, outputs } = (await history())[id]!;
    assert.equal(status.status_str, "success");
    const query = new URLSearchParams(outputs["2"]!.images[0]!);
    assert.equal((await two.get(`/view?${query}`)).headers.get("content-type"), "image/png");
    const stream = await (await one.get(`/api/v2/jobs/${copied.id}/events`)).text();
    assert.match(stream, /event: status\ndata: {"status":"succeeded"}/);
    // values are the worker's to check: the front end may have no models
    const wrong = await first.submit(first.workflows.fromJson({ 1: { class_type: "SaveImage", inputs: {} } }));
    await wrong.wait();
    assert.equal(wrong.status, "failed");
  });
});
