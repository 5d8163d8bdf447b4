import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { get as httpGet } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { Comfy, ComfyError, InvalidWorkflow, JobFailed, NotFound, Unauthorized } from "@comfyorg/sdk";
import { schemas } from "@comfyorg/sdk/low";
import { createPreviewHost, decodePng, encodePng } from "latentkit";
import { createGraphAgent } from "latentkit/hooks";
import { startService } from "latentkit/service";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import {
  classicStarter,
  ended,
  picture,
  quick,
  refusedSocket,
  socketTo,
  submit,
} from "../../../../helpers/hooks/classic-service.js";
import { FakeClock } from "../../../../helpers/hooks/fake-clock.js";
import { bearer, scriptedAgent, serviceStarter, TOKEN, until } from "../../../../helpers/hooks/hook-service.js";
import { Receiver } from "../../../../helpers/hooks/webhook-receiver.js";

describe("Comfy API v2 with the unmodified SDK", () => {
  /** Samples a little picture. */
  const picture = (seed: unknown, width = 64) => ({
    4: { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "preview-sd15.safetensors" } },
    5: { class_type: "EmptyLatentImage", inputs: { width, height: 64, batch_size: 1 } },
    6: { class_type: "CLIPTextEncode", inputs: { text: "a fox", clip: ["4", 1] } },
    3: {
      class_type: "KSampler",
      inputs: {
        seed,
        steps: 4,
        cfg: 7,
        sampler_name: "euler",
        scheduler: "normal",
        denoise: 1,
        model: ["4", 0],
        positive: ["6", 0],
        negative: ["6", 0],
        latent_image: ["5", 0],
      },
    },
    8: { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["4", 2] } },
    9: { class_type: "SaveImage", inputs: { images: ["8", 0], filename_prefix: "fox" } },
  });
  const text = (words: string) => ({
    1: {
      class_type: "ext saveTextLazy",
      inputs: { text: words, output_file_path: ".", file_name: "words", file_extension: "txt", overwrite: true },
    },
  });

  /** A response with its addresses as a client resolves them: without `public_url` they are paths. */
  const absolute = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value), (_key, inner: unknown) =>
      typeof inner === "string" && inner.startsWith("/api/") ? `http://localhost${inner}` : inner,
    );

  const start = serviceStarter();
  const agents: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.close();
    delete process.env.COMFY_BASE_URL;
  });
  // removed last
  const folder = temporaryFolder();
  const open = async (web: object = {}, limits: object = {}, inThisThread = false) => {
    const host = inThisThread ? createPreviewHost() : undefined;
    const agent = createGraphAgent({ graph: text("hook"), outputDir: join(folder(), "out"), threads: 1, host });
    agents.push(agent);
    const service = await start({ agent, config: { comfy_api: true, ...web, limits } });
    const clientOf = (apiKey: string | undefined, options = {}) => {
      process.env.COMFY_BASE_URL = service.url;
      return new Comfy({ ...(apiKey !== undefined && { apiKey }), ...options });
    };
    return { ...service, clientOf, client: clientOf(TOKEN) };
  };

  it("run: progress, output, download, workflow; answers fit the contract's schemas", async () => {
    const { client, get, url } = await open();
    const job = await client.submit(client.workflows.fromJson(picture(7)));
    const events: { event?: string; type?: string }[] = [];
    for await (const event of job.events()) events.push(event as never);
    await job.wait();
    assert.equal(job.status, "succeeded");
    const [output] = job.getOutputs("9");
    assert.equal(job.outputs.length, 1);
    const { width, text: texts } = await decodePng(Buffer.from(await output!.toBytes()));
    assert.equal(width, 64);
    assert.match(texts.prompt!, /a fox/);
    assert.ok(events.length >= 3, JSON.stringify(events));
    const raw = (await (await get(`/api/v2/jobs/${job.id}`)).json()) as { outputs: { id: string; url: string }[] };
    schemas.zJob.parse(absolute(raw));
    const asset = await (await get(`/api/v2/assets/${raw.outputs[0]!.id}`)).json();
    schemas.zAsset.parse(absolute(asset));
    // signed: no token
    assert.equal((await fetch(new URL(raw.outputs[0]!.url, url))).status, 200);
    assert.deepEqual((await job.getWorkflow()).workflow, JSON.parse(JSON.stringify(picture(7))));
  });

  it("addresses of outputs begin with public_url, or are paths, whatever the Host header says", async () => {
    for (const [web, start] of [
      [{ trust_proxy: true }, "/api/v2/"],
      [{ public_url: "https://render.example.com/x" }, "https://render.example.com/x/api/v2/"],
    ] as const) {
      const { client, url } = await open(web);
      const job = await client.run(client.workflows.fromJson(picture(7)));
      const headers = { host: "evil.example", "x-forwarded-host": "evil.example", authorization: `Bearer ${TOKEN}` };
      const [response] = (await once(httpGet(`${url}/api/v2/jobs/${job.id}`, { headers }), "response")) as [Readable];
      const body = Buffer.concat(await response.toArray()).toString();
      const { outputs } = JSON.parse(body) as { outputs: { url: string }[] };
      assert.ok(outputs[0]!.url.startsWith(start), outputs[0]!.url);
      assert.doesNotMatch(body, /evil/);
    }
  });

  it("a foreign Origin is refused, in the contract's envelope; the own one and allowed ones pass", async () => {
    const { get, post, url } = await open({ allowed_origins: ["https://studio.example"] });
    for (const origin of ["https://evil.example", "null", `${url}.evil.example`]) {
      for (const response of [
        await get("/api/v2/jobs/x", { origin }),
        await post("/api/v2/jobs", { workflow: picture(7) }, { origin }),
        await get("/api/v2/nothing", { origin }),
      ]) {
        const expected = response.url.endsWith("nothing") ? 404 : 403;
        assert.equal(response.status, expected);
      }
    }
    for (const origin of [url, "https://studio.example"])
      assert.equal((await get(`/api/v2/jobs/${randomUUID()}`, { origin })).status, 404);
  });

  it("100 jobs in a row, without a hang; a look at a young job is held until it ends", async () => {
    const { client, clientOf } = await open({}, {}, true);
    let looks = 0;
    const counting = clientOf(TOKEN, {
      fetch: (input: string | URL | Request, init?: RequestInit) => {
        if ((init?.method ?? "GET") === "GET") looks += 1;
        return fetch(input, init);
      },
    });
    let quick = 0;
    for (let i = 0; i < 100; i++) {
      const [before, start] = [looks, performance.now()];
      // braces are text here: no message fills them
      const job = await counting.run(client.workflows.fromJson(text(`words {{message}} ${i}`)));
      assert.equal(job.status, "succeeded");
      assert.equal(Buffer.from(await job.outputs[0]!.toBytes()).toString(), `words {{message}} ${i}`);
      if (performance.now() - start > 1000) continue;
      // one for the job, which was young, and one for the download: no polling
      assert.equal(looks - before, 2);
      quick += 1;
    }
    assert.ok(quick > 0);
  });

  it("a job that has ended before the first look gives one frame, its status", async () => {
    const { client, get } = await open({}, {}, true);
    const job = await client.run(client.workflows.fromJson(text("x")));
    const stream = await (await get(`/api/v2/jobs/${job.id}/events`)).text();
    assert.deepEqual(stream.match(/^event: .*$/gm), ["event: status"]);
    assert.match(stream, /"status":"succeeded"/);
    const resumed = await (await get(`/api/v2/jobs/${job.id}/events`, { "last-event-id": "1" })).text();
    assert.deepEqual(resumed.match(/^event: (?:output|status)$/gm), ["event: output", "event: status"]);
    const names: unknown[] = [];
    for await (const event of job.events()) names.push(event);
    assert.equal(names.length, 1);
  });

  it("seeds of 20 digits arrive as text and as digits; those that JavaScript rounded are refused", async () => {
    const { client, get, post } = await open();
    const seed = "18446744073709551615";
    const job = await client.run(client.workflows.fromJson(picture(seed)));
    const [output] = job.outputs;
    assert.match((await decodePng(Buffer.from(await output!.toBytes()))).text.prompt!, /18446744073709551615/);
    const body = `{"workflow":${JSON.stringify(picture(0)).replace('"seed":0', `"seed":${seed}`)}}`;
    const response = await post("/api/v2/jobs", body);
    assert.equal(response.status, 201);
    const { id } = (await response.json()) as { id: string };
    assert.match(await (await get(`/api/v2/jobs/${id}/workflow`)).text(), /"seed": ?18446744073709551615/);
    const rounded = client.workflows.fromJson(picture(Number(seed)));
    await assert.rejects(client.submit(rounded), (error: unknown) => {
      assert.ok(error instanceof InvalidWorkflow);
      assert.match(error.message, /workflow\.3\.inputs\.seed: 18446744073709552000 may have been rounded/);
      return true;
    });
  });

  it("uploads are stored once by their hash, and a graph reads them", async () => {
    const { client, url, get } = await open();
    const png = await encodePng({ data: new Uint8Array(16 * 8 * 3).fill(200), width: 16, height: 8, channels: 3 });
    const asset = client.assets.fromBytes(png, { filename: "same.png", contentType: "image/png" });
    const workflow = client.workflows.fromJson({
      1: { class_type: "LoadImage", inputs: { image: "none" } },
      2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "copy" } },
    });
    workflow.setInput("1", "image", asset);
    const job = await client.run(workflow);
    assert.equal(job.status, "succeeded");
    const { width, height } = await decodePng(Buffer.from(await job.outputs[0]!.toBytes()));
    assert.deepEqual([width, height, asset.createdNew], [16, 8, true]);
    const again = client.assets.fromBytes(png, { filename: "other.png", contentType: "image/png" });
    await again.commit();
    assert.equal(again.createdNew, false);
    assert.notEqual(again.id, asset.id);
    const content = await get(`/api/v2/assets/${asset.id}/content`, { range: "bytes=0-3" });
    assert.deepEqual(
      [content.status, Buffer.from(await content.arrayBuffer())],
      [206, Buffer.from(png).subarray(0, 4)],
    );
    assert.equal((await get(`/api/v2/assets/${asset.id}/content`, { range: "bytes=99999-" })).status, 416);
    assert.equal((await fetch(`${url}/api/v2/assets/${asset.id}/content`)).status, 401);
    schemas.zAsset.parse(absolute(await (await get(`/api/v2/assets/${asset.id}`)).json()));
    await asset.delete();
    await assert.rejects(client.assets.get(again.id === undefined ? "" : (asset.id ?? "gone")), NotFound);
    // the other name still has the bytes
    assert.equal((await get(`/api/v2/assets/${again.id}/content`)).status, 200);
    // an output is an asset too, and an input of the next job
    const chained = client.workflows.fromJson({
      1: { class_type: "LoadImage", inputs: { image: { __type: "core/ASSET", info: { id: job.outputs[0]!.id } } } },
      2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "chained" } },
    });
    const next = await client.run(chained);
    assert.equal(next.status, "succeeded");
    const missing = client.workflows.fromJson({
      1: { class_type: "LoadImage", inputs: { image: { __type: "core/ASSET", info: { id: "../../etc/passwd" } } } },
      2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "x" } },
    });
    await assert.rejects(
      client.submit(missing),
      (error: unknown) => error instanceof ComfyError && error.code === "missing_asset",
    );
  });

  it("a declared hash is checked, a form that is cut or too large leaves nothing", async () => {
    const { url, post } = await open({}, { upload_bytes: 100_000, uploads_bytes: 200_000 });
    const upload = (bytes: Uint8Array<ArrayBuffer>, fields: Record<string, string> = {}) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.append(name, value);
      form.append("file", new Blob([bytes]), "a.bin");
      return fetch(`${url}/api/v2/assets`, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}` },
        body: form,
      });
    };
    const codeOf = async (response: Response) => ((await response.json()) as { error: { code: string } }).error.code;
    const wrong = await upload(new Uint8Array(10), { expected_hash: `blake3:${"0".repeat(64)}` });
    assert.deepEqual([wrong.status, await codeOf(wrong)], [409, "hash_mismatch"]);
    assert.equal((await upload(new Uint8Array(200_000))).status, 413);
    assert.equal((await upload(new Uint8Array(90_000).fill(1), { content_type: "image/png" })).status, 201);
    assert.equal((await upload(new Uint8Array(90_000).fill(1))).status, 200);
    assert.equal((await upload(new Uint8Array(90_000).fill(2))).status, 201);
    const full = await upload(new Uint8Array(90_000).fill(3));
    assert.deepEqual([full.status, await codeOf(full)], [507, "storage_full"]);
    for (const [field, value, fault] of [
      ["expires_in", 5, "expected 60 to 604800"],
      ["expires_in", 1.5, "expected an integer"],
      ["file_path", "x".repeat(1025), "expected at most 1024 printable characters"],
    ] as const) {
      const refused = await post("/api/v2/assets/from-hash", { hash: `blake3:${"0".repeat(64)}`, [field]: value });
      const { error } = (await refused.json()) as { error: { message: string } };
      assert.deepEqual([refused.status, error.message], [400, `${field}: ${fault}`]);
    }
    const wrongType = await upload(new Uint8Array(1), { content_type: "text/html\r\nx: y" });
    assert.equal(wrongType.status, 400);
    const cut = await fetch(`${url}/api/v2/assets`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "multipart/form-data; boundary=b" },
      body: '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nabc',
    });
    assert.equal(cut.status, 400);
  });

  it("cancel: a running job ends as canceled", async () => {
    const { client } = await open();
    const job = await client.submit(client.workflows.fromJson(picture(1, 2048)));
    await job.cancel();
    await job.wait();
    assert.equal(job.status, "canceled");
    await job.cancel();
    assert.equal(job.status, "canceled");
  });

  it("inputs fill the graph where they are allowed; a wrong one is refused", async () => {
    const { post, get } = await open({ comfy_inputs: true });
    const submit = (body: string) => post("/api/v2/jobs", body, { "user-agent": "comfy-sdk-typescript/0.1" });
    const workflow = JSON.stringify(picture(1));
    const response = await submit(
      `{"workflow":${workflow},"inputs":{"3.seed":"18446744073709551615","6.text":"a cat"}}`,
    );
    assert.equal(response.status, 201);
    const { id } = (await response.json()) as { id: string };
    const text = await (await get(`/api/v2/jobs/${id}/workflow`)).text();
    assert.match(text, /"seed": ?"?18446744073709551615/);
    assert.match(text, /"text": ?"a cat"/);
    for (const [inputs, message] of [
      ['{"3.steps":"many"}', /^inputs: .*steps/],
      ['{"3.nothing":1}', /^inputs: "3\.nothing" is not a parameter of the graph/],
      ['{"3.model":["4",0]}', /^inputs: "3\.model" is not a parameter of the graph/],
      ['{"3.seed":18446744073709552000}', /^inputs\.3\.seed: 18446744073709552000 may have been rounded/],
      ['{"3.steps":NaN}', /^inputs: "3\.steps": expected a whole number from 1 to 10000, received NaN\.$/],
      ["[]", /^inputs: expected an object/],
    ] as const) {
      const refused = await submit(`{"workflow":${workflow},"inputs":${inputs}}`);
      const { error } = (await refused.json()) as { error: { code: string; message: string } };
      assert.deepEqual([refused.status, error.code], [422, "invalid_workflow"]);
      assert.match(error.message, message);
    }
  });

  it("NaN of Python: nothing outside of inputs, refused by node and input inside; null is an absent field", async () => {
    const { post } = await open();
    const workflow = JSON.stringify(picture(1));
    const aside = workflow.replace('"class_type"', '"is_changed":[NaN],"class_type"');
    const inside = workflow.replace('"steps":', '"odd":[Infinity],"steps":');
    assert.ok(aside !== workflow && inside !== workflow);
    const absent = '"inputs":null,"webhook_url":null,"extra_data":null';
    assert.equal((await post("/api/v2/jobs", `{"workflow":${aside},${absent}}`)).status, 201);
    const refused = await post("/api/v2/jobs", `{"workflow":${inside}}`);
    const { error } = (await refused.json()) as { error: { code: string; message: string } };
    assert.deepEqual([refused.status, error.code], [422, "invalid_workflow"]);
    assert.equal(error.message, 'Node 3, input "odd": expected a finite number, received Infinity.');
  });

  it("webhook_url: the webhook of that address is told of its jobs alone; any other address is refused", async () => {
    const receiver = await Receiver.listen();
    try {
      const secret = `whsec_${Buffer.from("a secret of at least 24 bytes").toString("base64")}`;
      const mine = { url: receiver.url, secrets: secret, on_request: true, allow_networks: ["127.0.0.1"] };
      const { post } = await open({ webhooks: { mine }, public_url: "https://render.example.com/" });
      const workflow = text("x");
      assert.equal((await post("/api/v2/jobs", { workflow })).status, 201);
      assert.ok((await post("/hooks/agent", { message: "{}" })).ok);
      const response = await post("/api/v2/jobs", { workflow, webhook_url: receiver.url });
      assert.equal(response.status, 201);
      const { id } = (await response.json()) as { id: string };
      await until(() => receiver.received.length > 0);
      assert.deepEqual(receiver.ids, [`${id}_succeeded`]);
      for (const address of ["https://example.com/", "no address", 7]) {
        const refused = await post("/api/v2/jobs", { workflow, webhook_url: address });
        const { error } = (await refused.json()) as { error: { code: string; message: string } };
        assert.deepEqual([refused.status, error.code], [422, "invalid_workflow"]);
        assert.match(error.message, /^webhook_url: (expected a text|no configured webhook)/);
      }
    } finally {
      receiver.close();
    }
  });

  it("errors: their classes, codes and details", async () => {
    const { client, clientOf, url, get, post } = await open();
    const workflows = client.workflows;
    await assert.rejects(clientOf("wrong").submit(workflows.fromJson(text("x"))), Unauthorized);
    await assert.rejects(client.jobs.get("a5a5a5a5-0000-4000-8000-000000000000"), NotFound);
    const noClass = { 1: { class_type: "NoSuchNode", inputs: {} } };
    await assert.rejects(client.submit(workflows.fromJson(noClass)), (error: unknown) => {
      assert.ok(error instanceof InvalidWorkflow);
      const { node_errors } = error.details as { node_errors: Record<string, { reason: string }[]> };
      assert.equal(node_errors["1"]?.[0]?.reason, "unknown_class");
      return true;
    });
    const { 9: save, ...rest } = picture(1);
    const noInput = { ...rest, 9: { ...save, inputs: { filename_prefix: "x" } } };
    await assert.rejects(client.submit(workflows.fromJson(noInput)), (error: unknown) => {
      assert.ok(error instanceof InvalidWorkflow);
      const { node_errors } = error.details as { node_errors: Record<string, object[]> };
      const [first] = node_errors["9"] as { field: string; reason: string }[];
      assert.deepEqual([first!.field, first!.reason], ["images", "missing_input"]);
      return true;
    });
    for (const [body, code] of [
      [{ workflow: text("x"), webhook_url: "https://example.com" }, "invalid_workflow"],
      [{ workflow: text("x"), inputs: {} }, "invalid_workflow"],
      [{ workflow: { nodes: [], links: [] } }, "workflow_format_ui"],
      [[], "invalid_workflow"],
      ["{", "invalid_workflow"],
    ] as const) {
      const response = await post("/api/v2/jobs", body);
      const { error } = (await response.json()) as { error: { code: string } };
      assert.deepEqual([response.status, error.code], [422, code]);
    }
    for (const path of ["/api/v2", "/api/v2/", "/api/v2/nothing/here", "/api/v2/models/x", "/api/v2/jobs/%zz"]) {
      const { error } = schemas.zErrorEnvelope.parse(await (await get(path)).json());
      assert.equal(error.code, "not_found", path);
    }
    assert.equal((await get("/api/v2/jobs")).status, 405);
    assert.equal((await post("/api/v2/jobs", "{}", { "content-type": "text/plain" })).status, 415);
    // another token wins nothing by a run of a hook
    const hook = await post("/hooks/agent", { message: "{}" });
    const { run_id } = (await hook.json()) as { run_id: string };
    await assert.rejects(client.jobs.get(run_id), NotFound);
    assert.equal((await fetch(`${url}/api/v2/jobs`, { method: "POST" })).status, 401);
  });

  it("a node that fails: JobFailed with the node", async () => {
    const { client } = await open();
    const workflow = client.workflows.fromJson({
      1: { class_type: "LoadImage", inputs: { image: "https://127.0.0.1:1/none.png" } },
      2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "x" } },
    });
    const job = await client.submit(workflow);
    await assert.rejects(job.result(), (error: unknown) => {
      assert.ok(error instanceof JobFailed);
      assert.equal(error.code, "node_execution_error");
      return true;
    });
  });

  it("a key is used once; the refusal names the job that it started", async () => {
    const { post } = await open();
    const submit = () => post("/api/v2/jobs", { workflow: text("x") }, { "idempotency-key": "k" });
    const first = (await (await submit()).json()) as { id: string };
    const second = await submit();
    const { error } = (await second.json()) as { error: { code: string; details: { job_id: string } } };
    assert.deepEqual([second.status, error.code, error.details.job_id], [422, "idempotency_key_reuse", first.id]);
    assert.equal(second.headers.get("location"), `/api/v2/jobs/${first.id}`);
  });

  it("a service that stops refuses a job with a 429, which the SDK repeats, and ends streams", async () => {
    const { client, post, get, hooks } = await open();
    const job = await client.submit(client.workflows.fromJson(picture(1, 2048)));
    const stream = await get(`/api/v2/jobs/${job.id}/events`);
    const closed = hooks.close(0);
    const refused = await post("/api/v2/jobs", { workflow: text("x") });
    const { error } = (await refused.json()) as { error: { code: string } };
    assert.deepEqual([refused.status, error.code], [429, "deployment_not_ready"]);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    assert.match(await stream.text(), /"status":"failed"/);
    await closed;
  });

  it("too many streams of a job are refused; a workflow has at most 256 assets", async () => {
    const { client, get, post } = await open({}, { streams_per_run: 1 });
    const job = await client.submit(client.workflows.fromJson(picture(1, 2048)));
    const stream = await get(`/api/v2/jobs/${job.id}/events`);
    const second = await get(`/api/v2/jobs/${job.id}/events`);
    const { error } = (await second.json()) as { error: { code: string } };
    assert.deepEqual([second.status, error.code], [429, "too_many_streams"]);
    // looks are never refused
    assert.equal((await get(`/api/v2/jobs/${job.id}`)).status, 200);
    await job.cancel();
    assert.match(await stream.text(), /"status":"canceled"/);
    const inputs = Object.fromEntries(
      Array.from({ length: 257 }, (_, i) => [`image${i}`, { __type: "core/ASSET", info: { id: `a${i}` } }]),
    );
    const many = await post("/api/v2/jobs", { workflow: { 1: { class_type: "LoadImage", inputs } } });
    assert.match(await many.text(), /more than 256 assets/);
    const malformed = { image: { __type: "core/ASSET" } };
    const none = await post("/api/v2/jobs", { workflow: { 1: { class_type: "LoadImage", inputs: malformed } } });
    assert.match(await none.text(), /"code":"missing_asset"/);
  });

  it("wrong tokens: 429 without Retry-After beyond the budget, so that the client is told", async () => {
    const { url } = await open({}, { failed_auth_per_minute: 1 });
    const look = () => fetch(`${url}/api/v2/jobs/x`, { headers: { authorization: "Bearer wrong" } });
    assert.equal((await look()).status, 401);
    const limited = await look();
    assert.deepEqual([limited.status, limited.headers.get("retry-after")], [429, null]);
  });

  it("is closed unless it is configured, and needs an agent with graphs", async () => {
    const service = await start();
    assert.equal((await service.get("/api/v2/jobs/x")).status, 404);
    assert.match(await (await service.get("/api/v2")).text(), /"ok":false/);
    await refuses(() => start({ agent: scriptedAgent, config: { comfy_api: true } }), "config.invalid", /comfy_api/);
  });

  it("open: without a token, for this machine alone, and for no page of another site", async () => {
    const { clientOf, url, get } = await open({ comfy_api: "open" });
    const client = clientOf("no token of this service");
    const job = await client.run(client.workflows.fromJson(picture(7)));
    assert.equal(job.status, "succeeded");
    const { outputs } = (await (await fetch(`${url}/api/v2/jobs/${job.id}`)).json()) as {
      outputs: { id: string }[];
    };
    const content = `${url}/api/v2/assets/${outputs[0]!.id}/content`;
    assert.equal((await fetch(content)).status, 200);
    assert.equal((await fetch(content, { headers: { "sec-fetch-site": "cross-site" } })).status, 403);
    assert.equal((await get("/api/v2/jobs/x", { origin: "https://evil.example" })).status, 403);
    const web = { hooks_token: TOKEN, comfy_api: "open" as const };
    const reachable = { host: "0.0.0.0", port: 0, store: "memory:", output_dir: folder(), channels: { web } };
    await refuses(() => startService(reachable), "config.invalid", /channels\.web\.comfy_api: .*0\.0\.0\.0/);
  });
});

describe("ComfyUI's classic API", () => {
  const folder = temporaryFolder();
  const start = classicStarter();
  const startBare = serviceStarter();

  it("closed unless the configuration opens it, to tokens, or to this machine", async () => {
    const closed = await start({ web: { comfy_classic: "none" } });
    for (const path of ["/prompt", "/api/prompt", "/queue", "/history", "/view", "/object_info", "/system_stats"]) {
      assert.equal((await closed.get(path)).status, 404, path);
    }
    // the upgrade is ignored, as without this API
    assert.equal(await refusedSocket(closed, "/ws", bearer), 404);
    const service = await start();
    for (const path of ["/prompt", "/api/queue", "/history", "/view?filename=x", "/object_info", "/system_stats"]) {
      assert.equal((await fetch(service.url + path)).status, 401, path);
    }
    assert.equal((await service.get("/prompt?token=x")).status, 400);
    assert.equal(await refusedSocket(service, "/ws?clientId=me", {}), 401);
    assert.equal(await refusedSocket(service, "/ws?clientId=me", { authorization: "Bearer wrong" }), 401);
    assert.equal(await refusedSocket(service, "/other", bearer), 404);
    await refuses(
      () => startBare({ agent: scriptedAgent, config: { comfy_classic: "token" } }),
      "config.invalid",
      /comfy_classic/,
    );
    const open = { host: "0.0.0.0", port: 0, store: "memory:", output_dir: folder() };
    const web = { hooks_token: "correct-horse-battery-staple", comfy_classic: "open" as const };
    await refuses(() => startService({ ...open, channels: { web } }), "config.invalid", /comfy_classic.*0\.0\.0\.0/);
  });

  it("pages of other sites can neither call it nor open a WebSocket", async () => {
    const service = await start({ web: { comfy_classic: "open", public_url: "https://render.example.com" } });
    const call = (headers: Record<string, string>) =>
      fetch(`${service.url}/prompt`, { method: "POST", body: JSON.stringify({ prompt: quick() }), headers });
    for (const origin of [
      "https://evil.example",
      "null",
      "http://127.0.0.1:1",
      "https://render.example.com.evil.example",
    ]) {
      assert.equal((await call({ origin })).status, 403, origin);
      assert.equal(await refusedSocket(service, "/ws", { origin }), 403, origin);
    }
    assert.equal(await refusedSocket(service, "/ws", { "sec-fetch-site": "cross-site" }), 403);
    assert.equal(await refusedSocket(service, "/ws", { host: "rebound.example" }), 403);
    const own = `http://127.0.0.1:${service.port}`;
    for (const origin of [own, "https://render.example.com"])
      assert.equal((await call({ origin })).status, 200, origin);
    const { socket } = await socketTo(service, "/api/ws", { origin: own });
    socket.terminate();
  });

  it("messages of a prompt in ComfyUI's order, no sooner than 50 ms after its response", async () => {
    const clock = new FakeClock();
    const service = await start({ clock });
    const { socket, messages } = await socketTo(service);
    const other = await socketTo(service, "/ws?clientId=other");
    socket.send(JSON.stringify({ type: "feature_flags", data: { supports_preview_metadata: true } }));
    await until(() => messages.length === 2, "the flags");
    const { prompt_id: id } = await submit(service, picture(5), { client_id: "me" });
    assert.deepEqual(await (await service.get(`/history/${id}`)).json(), {});
    const queue = (await (await service.get("/queue")).json()) as { queue_running: [number, string][] };
    assert.equal(queue.queue_running[0]![1], id);
    await clock.advance(49);
    assert.deepEqual(await (await service.get(`/history/${id}`)).json(), {});
    assert.equal(messages.length, 2);
    await clock.advance(1);
    await until(() => messages.at(-1)!.type === "executing" && messages.at(-1)!.data.node === null, "the end");
    const types = messages.slice(2).map(({ type, data }) => (type === "executing" ? `${type} ${data.node}` : type));
    assert.deepEqual(
      [...new Set(types)],
      [
        "status",
        "execution_start",
        "execution_cached",
        "executing 4",
        "executing 5",
        "executing 6",
        "executing 3",
        "progress",
        "executing 8",
        "executing 9",
        "executed",
        "execution_success",
        "executing null",
      ],
    );
    assert.deepEqual(types.slice(-3), ["execution_success", "status", "executing null"]);
    assert.deepEqual(
      other.messages.map(({ type }) => type),
      ["status", "status", "status"],
    );
    const entry = await ended(service, id);
    assert.equal(entry.status.status_str, "success");
    assert.deepEqual(entry.prompt.slice(3), [{ extra_pnginfo: {}, client_id: "me" }, ["9"]]);
    for (const one of [socket, other.socket]) one.close();
  });

  for (const inThread of [false, true]) {
    it(`previews are binary messages${inThread ? ", from a thread too" : ""}`, async () => {
      const service = await start({ inThread, previews: true });
      const { socket } = await socketTo(service, "/ws?clientId=me");
      const { socket: other } = await socketTo(service, "/ws?clientId=me");
      const frames: Buffer[] = [];
      const framesWithFacts: Buffer[] = [];
      socket.on("message", (data: Buffer, isBinary) => isBinary && frames.push(data));
      other.on("message", (data: Buffer, isBinary) => isBinary && framesWithFacts.push(data));
      other.send(JSON.stringify({ type: "feature_flags", data: { supports_preview_metadata: true } }));
      const { prompt_id: id } = await submit(service, picture(1, 2000), { client_id: "me" });
      await until(() => frames.length > 1 && framesWithFacts.length > 1, "two previews");
      await service.post("/interrupt", {});
      assert.deepEqual([frames[0]!.readUInt32BE(0), frames[0]!.readUInt32BE(4)], [1, 2]);
      const { width, height } = await decodePng(frames[0]!.subarray(8));
      assert.deepEqual([width, height], [8, 8]);
      const length = framesWithFacts[0]!.readUInt32BE(4);
      assert.equal(framesWithFacts[0]!.readUInt32BE(0), 4);
      const facts = JSON.parse(framesWithFacts[0]!.toString("utf8", 8, 8 + length)) as Record<string, unknown>;
      assert.deepEqual([facts.node_id, facts.prompt_id, facts.image_type], ["3", id, "image/png"]);
      await decodePng(framesWithFacts[0]!.subarray(8 + length));
      await ended(service, id);
      for (const one of [socket, other]) one.close();
    });
  }

  it("sockets are bounded in number, and cut where they do not read", async () => {
    const service = await start({ limits: { streams: 2, streams_per_run: 1 } });
    const { socket } = await socketTo(service);
    assert.equal(await refusedSocket(service, "/ws?clientId=me", bearer), 429);
    const silent = connect(service.port, "127.0.0.1");
    const key = Buffer.alloc(16).toString("base64");
    const lines = ["GET /ws?clientId=silent HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade"];
    const more = [`Sec-WebSocket-Key: ${key}`, "Sec-WebSocket-Version: 13", `Authorization: ${bearer.authorization}`];
    // a ping within the same bytes is not lost
    const ping = Buffer.from([0x89, 0x80, 0, 0, 0, 0]);
    silent.write(Buffer.concat([Buffer.from([...lines, ...more, "", ""].join("\r\n")), ping]));
    const received: Buffer[] = [];
    silent.on("data", (chunk) => received.push(chunk));
    await until(() => Buffer.concat(received).includes(Buffer.from([0x8a, 0x00])), "the pong");
    assert.equal(await refusedSocket(service, "/ws?clientId=third", bearer), 429);
    // a frame without a mask is refused by closing
    silent.write(Buffer.from([0x81, 0x01, 0x41]));
    await once(silent, "close");
    const closed = once(socket, "close") as Promise<[number]>;
    await service.listening.close(0);
    assert.equal((await closed)[0], 1001);
  });
});
