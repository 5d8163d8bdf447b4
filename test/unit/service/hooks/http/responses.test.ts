import assert from "node:assert/strict";
import { join } from "node:path";
import { createGraphAgent } from "latentkit/hooks";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { bearer, serviceStarter, until } from "../../../../helpers/hooks/hook-service.js";
import type { OfOneApi } from "../../../../helpers/hooks/refusals.js";

const graph = {
  1: { class_type: "EmptyImage", inputs: { width: 64, height: 64, batch_size: 1, color: 255 } },
  2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "blue" } },
};
const HASH = `blake3:${"0".repeat(64)}`;
const ASSET = { 1: { class_type: "LoadImage", inputs: { image: { __type: "core/ASSET", info: { id: "a1" } } } } };

describe("refusals of ComfyUI's APIs", () => {
  const start = serviceStarter();
  const agents: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.close();
  });
  const folder = temporaryFolder();
  const open = async (limits: object = {}) => {
    const agent = createGraphAgent({ graph, outputDir: join(folder(), "out"), threads: 1 });
    agents.push(agent);
    const service = await start({ agent, config: { comfy_api: true, comfy_classic: true, limits } });
    const upload = (fields: Record<string, string> = {}) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.append(name, value);
      form.append("file", new Blob(["a file"]), "a.bin");
      return fetch(`${service.url}/api/v2/assets`, { method: "POST", headers: bearer, body: form });
    };
    const submit = (body: object = { workflow: graph }, headers = {}) => service.post("/api/v2/jobs", body, headers);
    /** A job that has ended. */
    const job = async () => {
      const { id } = (await (await submit()).json()) as { id: string };
      const look = async () =>
        (await (await service.get(`/api/v2/jobs/${id}`)).json()) as { status: string; outputs: { id: string }[] };
      await until(async () => (await look()).status === "succeeded");
      return look();
    };
    return { ...service, upload, submit, job };
  };

  /** For each kind a request, and the whole of what its client reads. */
  const LINES: Record<OfOneApi, readonly [request: () => Promise<Response>, told: string]> = {
    forbidden: [
      async () => (await open()).get("/queue", { origin: "https://evil.example" }),
      "403 forbidden: a page of another site may not call this service",
    ],
    invalid_workflow: [
      async () => (await open()).submit({}),
      "422 invalid_workflow: workflow: expected a graph in API format",
    ],
    workflow_format_ui: [
      async () => (await open()).submit({ workflow: { nodes: [], links: [] } }),
      "422 workflow_format_ui: workflow: expected a graph in API format, received one of the editor",
    ],
    missing_asset: [
      async () => (await open()).submit({ workflow: ASSET }),
      "422 missing_asset: the workflow refers to 1 assets that do not exist",
    ],
    idempotency_key_reuse: [
      async () => {
        const { submit } = await open();
        await submit(undefined, { "idempotency-key": "k" });
        return submit(undefined, { "idempotency-key": "k" });
      },
      "422 idempotency_key_reuse: this idempotency key was already used to start a job",
    ],
    hash_mismatch: [
      async () => (await open()).upload({ expected_hash: HASH }),
      "409 hash_mismatch: expected_hash: the uploaded file has hash blake3:",
    ],
    asset_in_use: [
      async () => {
        const { url, job } = await open();
        const [output] = (await job()).outputs;
        return fetch(`${url}/api/v2/assets/${output!.id}`, { method: "DELETE", headers: bearer });
      },
      "409 asset_in_use: the output of a job cannot be deleted before the job",
    ],
    job_not_found: [async () => (await open()).get("/api/v2/jobs/none"), "404 job_not_found: no such run"],
    asset_not_found: [async () => (await open()).get("/api/v2/assets/none"), "404 asset_not_found: no such asset"],
    blob_not_found: [
      async () => (await open()).get(`/api/v2/assets/by-hash/${HASH}`),
      "404 blob_not_found: no upload has this hash: upload the file first",
    ],
    range_not_satisfiable: [
      async () => {
        const { upload, get } = await open();
        const { id } = (await (await upload()).json()) as { id: string };
        return get(`/api/v2/assets/${id}/content`, { range: "bytes=100-" });
      },
      "416 range_not_satisfiable: Range: expected bytes below 6",
    ],
    too_many_streams: [
      async () => {
        const { submit, post, get } = await open({ streams: 1 });
        await post("/api/queue/pause", "");
        const { id } = (await (await submit()).json()) as { id: string };
        // open until the service closes: the job waits
        await get(`/api/v2/jobs/${id}/events`);
        return get(`/api/v2/jobs/${id}/events`);
      },
      "429 too_many_streams: too many open streams, try again later",
    ],
    storage_full: [
      async () => (await open({ uploads_bytes: 1 })).upload(),
      "507 storage_full: the space for uploads is full, try again later",
    ],
    invalid_prompt: [
      async () => (await open()).post("/prompt", []),
      "400 invalid_prompt: The body: expected a JSON object with prompt",
    ],
    no_prompt: [
      async () => (await open()).post("/prompt", {}),
      "400 no_prompt: prompt: expected a graph in API format",
    ],
    invalid_prompt_id: [
      async () => (await open()).post("/prompt", { prompt: graph, prompt_id: "A" }),
      "400 invalid_prompt_id: prompt_id: expected a UUID in lower case",
    ],
  };

  for (const [kind, [request, told]] of Object.entries(LINES)) {
    it(`${kind}: status, code and sentence`, async () => {
      const response = await request();
      const { error } = (await response.json()) as { error: Record<string, string> };
      assert.ok(
        `${response.status} ${error.code ?? error.type}: ${error.message}`.startsWith(told),
        JSON.stringify(error),
      );
    });
  }
});
