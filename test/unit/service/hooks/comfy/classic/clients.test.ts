import assert from "node:assert/strict";
import { CallWrapper, ComfyApi, PromptBuilder } from "@saintno/comfyui-sdk";
import * as stableCanvas from "@stable-canvas/comfyui-client";
import { ComfyUIClient } from "comfy-ui-client";
import { decodePng, encodePng } from "latentkit";
import WebSocket from "ws";
import {
  classicStarter,
  copyOf,
  endless,
  failing,
  picture,
  quick,
} from "../../../../../helpers/hooks/classic-service.js";
import { bearer, TOKEN, until } from "../../../../../helpers/hooks/hook-service.js";

const png = () => encodePng({ data: new Uint8Array(16 * 8 * 3).fill(200), width: 16, height: 8, channels: 3 });
/** The first outputs of a node; it has no end of them. */
function* take(outputs: Iterable<unknown>, count: number): Generator<unknown> {
  for (const output of outputs) {
    if (count-- <= 0) return;
    yield output;
  }
}
const sizeOf = async (bytes: ArrayBuffer) => {
  const { width, height } = await decodePng(Buffer.from(bytes));
  return [width, height];
};

describe("ComfyUI's classic API with @saintno/comfyui-sdk", () => {
  const apis: ComfyApi[] = [];
  // before the service: they would connect again
  afterEach(() => {
    for (const api of apis.splice(0)) api.destroy();
  });
  const start = classicStarter();
  const open = async (url: string) => {
    const api = new ComfyApi(url, undefined, { credentials: { type: "bearer_token", token: TOKEN } });
    apis.push(api);
    const connected = new Promise((resolve) => api.on("connected", resolve));
    await api.init().waitForReady();
    await connected;
    return api;
  };
  const call = (api: ComfyApi, graph: object, errors: Error[] = []) => {
    const builder = new PromptBuilder(graph as never, [], ["images"]).setOutputNode("images" as never, "9" as never);
    return new CallWrapper(api, builder as never).onFailed((error) => errors.push(error));
  };
  type Result = { images: { images: { filename: string; subfolder: string; type: string }[] } } | false;

  it("run, progress and download; a wrong token is told", async () => {
    const { url } = await start({ inThread: true });
    const api = await open(url);
    let steps = 0;
    const wrapper = call(api, picture(7)).onProgress(() => {
      steps += 1;
    });
    const result = (await wrapper.run()) as Result;
    assert.ok(result);
    const blob = await api.getImage(result.images.images[0] as never);
    assert.deepEqual(await sizeOf(await blob.arrayBuffer()), [64, 64]);
    assert.ok(steps > 0);
    assert.equal((await api.getSystemStats()).system.os, "posix");
    assert.ok((await api.getCheckpoints()).length > 0);
    const wrong = new ComfyApi(url, undefined, { credentials: { type: "bearer_token", token: "wrong" } });
    apis.push(wrong);
    await new Promise((resolve) => wrong.on("auth_error", resolve as never));
  });

  it("upload, mask, a graph that reads them; errors; interrupt", async () => {
    const { url } = await start({ inThread: true });
    const api = await open(url);
    const uploaded = await api.uploadImage(Buffer.from(await png()), "same.png", { override: false });
    assert.ok(uploaded);
    assert.equal(uploaded.info.filename, "same.png");
    const result = (await call(api, copyOf("same.png")).run()) as Result;
    assert.ok(result);
    const blob = await api.getImage(result.images.images[0] as never);
    assert.deepEqual(await sizeOf(await blob.arrayBuffer()), [16, 8]);
    const mask = await encodePng({ data: new Uint8Array(16 * 8 * 4).fill(77), width: 16, height: 8, channels: 4 });
    const masked = await api.uploadMask(Buffer.from(mask), uploaded.info);
    assert.ok(masked);
    const picture = await decodePng(Buffer.from(await (await api.getImage(masked.info)).arrayBuffer()));
    assert.deepEqual([...picture.data.subarray(0, 4)], [200, 200, 200, 77]);

    const errors: Error[] = [];
    assert.equal(await call(api, copyOf("none.png"), errors).run(), false);
    assert.match(JSON.stringify(errors[0]!.cause ?? errors[0]!.message), /prompt_outputs_failed_validation/);
    assert.equal(await call(api, failing, errors).run(), false);
    assert.match(JSON.stringify(errors.at(-1)!.cause), /"node_id":"9".*"exception_type":"path.outside"/);

    let hasStarted = false;
    const running = call(api, endless(), errors)
      .onProgress(() => {
        hasStarted = true;
      })
      .run();
    await until(() => hasStarted, "the first step");
    await api.interrupt();
    assert.equal(await running, false);
    assert.match(errors.at(-1)!.message, /interrupted/);
    assert.equal((await api.getQueue()).queue_running.length, 0);
  });

  const many = async (count: number) => {
    const { url } = await start();
    const api = await open(url);
    for (let i = 0; i < count; i++) assert.ok(await call(api, quick(i)).run(), `job ${i}`);
  };
  it("jobs that end before their responses", () => many(5));
  it("100 jobs in a row @long", () => many(100));
});

describe("ComfyUI's classic API with @stable-canvas/comfyui-client", () => {
  const clients: stableCanvas.Client[] = [];
  // before the service: they would connect again
  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
  });
  const start = classicStarter();
  class SocketWithToken extends WebSocket {
    constructor(url: string) {
      super(url, { headers: bearer });
    }
  }
  const open = async (port: number) => {
    const withToken: typeof fetch = (url, init) => fetch(url, { ...init, headers: { ...init?.headers, ...bearer } });
    const client = new stableCanvas.Client({
      api_host: `127.0.0.1:${port}`,
      fetch: withToken,
      WebSocket: SocketWithToken,
    });
    clients.push(client);
    await client.connect();
    return client;
  };
  const download = async (images: readonly object[]) => {
    const [image] = images as { type: string; data: string }[];
    return (await fetch(image!.data, { headers: bearer })).arrayBuffer();
  };

  it("run, progress and download, by WebSocket and by polling", async () => {
    const { port } = await start({ inThread: true });
    const client = await open(port);
    let steps = 0;
    const progress = () => {
      steps += 1;
    };
    const byMessage = await client.enqueue(picture(7), { progress, workflow: { nodes: "of the editor" } });
    assert.deepEqual(await sizeOf(await download(byMessage.images)), [64, 64]);
    assert.ok(steps > 0);
    const byPolling = await client.enqueue_polling(picture(8), { polling_ms: 20 });
    const bytes = await download(byPolling.images);
    assert.deepEqual(await sizeOf(bytes), [64, 64]);
    assert.ok((await client.getSamplers()).includes("euler"));
  });

  it("errors, interrupt, removal from the queue", async () => {
    const { port } = await start({ inThread: true });
    const client = await open(port);
    await assert.rejects(client.enqueue(copyOf("none.png"), {}), (error: Error) => {
      assert.match(JSON.stringify(error), /prompt_outputs_failed_validation/);
      return true;
    });
    await assert.rejects(client.enqueue(failing, {}), stableCanvas.WorkflowExecutionError);
    const invoke = (graph: object) => {
      const workflow = new stableCanvas.Workflow();
      const nodes = graph as Record<string, { class_type: string; inputs: Record<string, unknown> }>;
      const made = new Map<string, unknown[]>();
      const outputsOf = (id: string): unknown[] => {
        const { class_type, inputs } = nodes[id]!;
        const linked = Object.entries(inputs).map(([name, value]) => [
          name,
          Array.isArray(value) ? (made.get(value[0]) ?? outputsOf(value[0]))[value[1]] : value,
        ]);
        made.set(id, [...take(workflow.node(class_type, Object.fromEntries(linked)), 3)]);
        return made.get(id)!;
      };
      outputsOf("9");
      return workflow.instance(client);
    };
    const [running, waiting] = [invoke(endless()), invoke(quick())];
    await running.enqueue();
    await waiting.enqueue();
    const ends = Promise.allSettled([running.wait(), waiting.wait()]);
    await until(async () => (await running.query()).running, "the start");
    assert.equal((await waiting.query()).pending, true);
    await waiting.interrupt();
    await running.interrupt();
    for (const end of await ends) {
      assert.equal(end.status, "rejected");
      assert.ok(end.reason instanceof stableCanvas.WorkflowInterruptedError, String(end.reason));
    }
  });

  const many = async (count: number) => {
    const { port } = await start();
    const client = await open(port);
    for (let i = 0; i < count; i++) {
      const { images } = await client.enqueue(quick(i), {});
      assert.equal(images.length, 1, `job ${i}`);
    }
  };
  it("jobs that end before their responses", () => many(5));
  it("100 jobs in a row @long", () => many(100));
});

describe("ComfyUI's classic API with comfy-ui-client", () => {
  const clients: ComfyUIClient[] = [];
  // before the service: they would connect again
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.disconnect();
  });
  const start = classicStarter();
  // it cannot send a token
  const open = async (inThread = false) => {
    const { port } = await start({ web: { comfy_classic: "open" }, inThread });
    const client = new ComfyUIClient(`127.0.0.1:${port}`, "an old client");
    clients.push(client);
    await client.connect();
    return client;
  };

  it("run, progress, download, upload, errors, interrupt", async () => {
    const client = await open(true);
    const types: string[] = [];
    const socket = (client as unknown as { ws: WebSocket }).ws;
    socket.on("message", (data) => types.push((JSON.parse(String(data)) as { type: string }).type));
    const images = await client.getImages(picture(7) as never);
    assert.deepEqual(await sizeOf(await images["9"]![0]!.blob.arrayBuffer()), [64, 64]);
    assert.ok(types.includes("progress"));
    const { name } = await client.uploadImage(Buffer.from(await png()), "same.png");
    const copies = await client.getImages(copyOf(name) as never);
    assert.deepEqual(await sizeOf(await copies["9"]![0]!.blob.arrayBuffer()), [16, 8]);
    await assert.rejects(client.getImages(copyOf("none.png") as never), /prompt_outputs_failed_validation/);
    assert.deepEqual(await client.getImages(failing as never), {});
    const running = client.getImages(endless() as never);
    await until(async () => (await client.getQueue()).queue_running.length === 1, "the start");
    await client.interrupt();
    assert.deepEqual(await running, {});
    await client.editHistory({ clear: true } as never);
    assert.deepEqual(await client.getHistory(), {});
  });

  const many = async (count: number) => {
    const client = await open();
    for (let i = 0; i < count; i++) {
      const images = await client.getImages(quick(i) as never);
      assert.equal(images["9"]!.length, 1, `job ${i}`);
    }
  };
  it("jobs that end before their responses", () => many(5));
  it("100 jobs in a row @long", () => many(100));
});
