import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { createPreviewHost, decodePng, encodePng } from "latentkit";
import { startService } from "latentkit/service";
import WebSocket from "ws";
import { refuses } from "../../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import {
  classicStarter,
  copyOf,
  endless,
  failing,
  picture,
  quick,
} from "../../../../../helpers/hooks/classic-service.js";
import {
  bearer,
  type RunningService,
  scriptedAgent,
  serviceStarter,
  until,
} from "../../../../../helpers/hooks/hook-service.js";

interface Message {
  readonly type: string;
  readonly data: Record<string, unknown>;
}
interface Entry {
  readonly prompt: [number, string, object, object, string[]];
  readonly outputs: Record<string, { images?: { filename: string; subfolder: string; type: string }[] }>;
  readonly status: { status_str: string; completed: boolean; messages: [string, object][] };
}

const UUID = "0f0f0f0f-1234-4abc-8def-000000000001";
const png = (channels: 3 | 4, value: number) =>
  encodePng({ data: new Uint8Array(16 * 8 * channels).fill(value), width: 16, height: 8, channels });

describe("ComfyUI's classic API", () => {
  const folder = temporaryFolder();
  const start = classicStarter();
  const startBare = serviceStarter();

  const submit = async ({ post }: RunningService, prompt: object, more: object = {}) => {
    const response = await post("/prompt", { prompt, ...more });
    assert.equal(response.status, 200, await response.clone().text());
    return (await response.json()) as { prompt_id: string; number: number; node_errors: object };
  };
  const ended = async ({ get }: RunningService, id: string) => {
    let entry: Entry | undefined;
    await until(async () => {
      entry = ((await (await get(`/history/${id}`)).json()) as Record<string, Entry>)[id];
      return entry !== undefined;
    }, "the entry of the history");
    return entry!;
  };
  const viewOf = (entry: Entry, more: Record<string, string> = {}) =>
    `/view?${new URLSearchParams({ ...entry.outputs["9"]!.images![0]!, ...more })}`;
  const socketTo = async ({ port }: RunningService, path = "/ws?clientId=me", headers: object = bearer) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: { ...headers } });
    const messages: Message[] = [];
    socket.on("message", (data, isBinary) => {
      if (!isBinary) messages.push(JSON.parse(String(data)) as Message);
    });
    await once(socket, "open");
    return { socket, messages };
  };
  const refusedSocket = async ({ port }: RunningService, path: string, headers: object) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: { ...headers } });
    socket.on("error", () => undefined);
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode: number }];
    socket.terminate();
    return response.statusCode;
  };
  const upload = (service: RunningService, bytes: Uint8Array, name: string, fields: Record<string, string> = {}) => {
    const form = new FormData();
    for (const [key, value] of Object.entries(fields)) form.append(key, value);
    form.append("image", new Blob([new Uint8Array(bytes)]), name);
    return fetch(`${service.url}/upload/image`, { method: "POST", headers: bearer, body: form });
  };

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
    const service = await start();
    const { socket, messages } = await socketTo(service);
    const other = await socketTo(service, "/ws?clientId=other");
    socket.send(JSON.stringify({ type: "feature_flags", data: { supports_preview_metadata: true } }));
    await until(() => messages.length === 2, "the flags");
    const { prompt_id: id } = await submit(service, picture(5), { client_id: "me" });
    const at = performance.now();
    assert.deepEqual(await (await service.get(`/history/${id}`)).json(), {});
    const queue = (await (await service.get("/queue")).json()) as { queue_running: [number, string][] };
    assert.equal(queue.queue_running[0]![1], id);
    await until(() => messages.at(-1)!.type === "executing" && messages.at(-1)!.data.node === null, "the end");
    assert.ok(performance.now() - at > 40);
    const types = messages.slice(2).map(({ type, data }) => (type === "executing" ? `${type} ${data.node}` : type));
    assert.deepEqual(
      [...new Set(types)],
      [
        ...[
          "status",
          "execution_start",
          "execution_cached",
          "executing 4",
          "executing 5",
          "executing 6",
          "executing 3",
        ],
        ...["progress", "executing 8", "executing 9", "executed", "execution_success", "executing null"],
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

  it("prompt_id: a UUID of the client is the prompt's, once; others are refused", async () => {
    const service = await start();
    const { prompt_id } = await submit(service, quick(), { prompt_id: UUID });
    assert.equal(prompt_id, UUID);
    await ended(service, UUID);
    for (const id of [UUID, UUID.toUpperCase(), "mine", 7]) {
      const response = await service.post("/prompt", { prompt: quick(), prompt_id: id });
      assert.equal(response.status, 400);
      assert.equal(((await response.json()) as { error: { type: string } }).error.type, "invalid_prompt_id");
    }
  });

  it("seeds of 20 digits arrive and come back as they were written, whatever the content type", async () => {
    const service = await start();
    const seed = "18446744073709551615";
    const body = JSON.stringify({ prompt: picture(0) }).replace('"seed":0', `"seed":${seed}`);
    for (const type of ["text/plain;charset=UTF-8", "application/x-www-form-urlencoded"]) {
      const response = await service.post("/api/prompt", body, { "content-type": type });
      const { prompt_id: id } = (await response.json()) as { prompt_id: string };
      const entry = await ended(service, id);
      assert.match(await (await service.get(`/history/${id}`)).text(), new RegExp(`"seed": ${seed}`));
      const { text } = await decodePng(Buffer.from(await (await service.get(viewOf(entry))).arrayBuffer()));
      assert.match(text.prompt!, new RegExp(`"seed": ${seed}`));
    }
  });

  it("errors: of the whole prompt, of some of its outputs, of a node that fails", async () => {
    const service = await start();
    const refused = async (body: unknown) => {
      const response = await service.post("/prompt", body);
      assert.equal(response.status, 400);
      return (await response.json()) as {
        error: { type: string };
        node_errors: Record<string, { class_type: string }>;
      };
    };
    assert.equal((await refused("{")).error.type, "invalid_prompt");
    assert.equal((await refused({})).error.type, "no_prompt");
    assert.equal((await refused({ prompt: {} })).error.type, "prompt_no_outputs");
    const wrong = await refused({ prompt: copyOf("none.png") });
    assert.equal(wrong.error.type, "prompt_outputs_failed_validation");
    assert.equal(wrong.node_errors["1"]!.class_type, "LoadImage");
    const broken = { class_type: "SaveImage", inputs: { images: ["8", 0], filename_prefix: "x" } };
    const wrongSize = { class_type: "EmptyImage", inputs: { width: -1, height: 8, batch_size: 1, color: 0 } };
    const { prompt_id, node_errors } = await submit(service, { ...quick(), 7: broken, 8: wrongSize });
    assert.deepEqual(Object.keys(node_errors), ["8"]);
    assert.deepEqual(Object.keys((await ended(service, prompt_id)).outputs), ["9"]);
    const { prompt_id: failed } = await submit(service, failing);
    const { status } = await ended(service, failed);
    assert.equal(status.completed, false);
    const [type, data] = status.messages.at(-1)!;
    assert.equal(type, "execution_error");
    assert.equal((data as { node_id: string }).node_id, "9");
  });

  it("queue: prompts of a client one after the other, in front, deleted, interrupted", async () => {
    const service = await start({ inThread: true });
    const { prompt_id: running } = await submit(service, endless(), { client_id: "me" });
    const { prompt_id: waiting } = await submit(service, quick(1), { client_id: "me" });
    const { prompt_id: front, number } = await submit(service, quick(2), { client_id: "me", front: true });
    assert.ok(number < 0);
    type Queue = { queue_running: [number, string][]; queue_pending: [number, string][] };
    const queue = async () => (await (await service.get("/queue")).json()) as Queue;
    await until(async () => (await queue()).queue_running.some(([, id]) => id === running), "the start");
    assert.deepEqual((await queue()).queue_pending.map(([, id]) => id).sort(), [waiting, front].sort());
    assert.deepEqual(await (await service.get("/prompt")).json(), { exec_info: { queue_remaining: 3 } });
    assert.deepEqual(await (await service.post("/queue", { delete: [waiting, "unknown"] })).json(), {});
    assert.equal((await ended(service, waiting)).status.messages.at(-1)![0], "execution_interrupted");
    assert.deepEqual(await (await service.post("/interrupt", { prompt_id: "unknown" })).json(), {});
    assert.deepEqual(await (await fetch(`${service.url}/interrupt`, { method: "POST", headers: bearer })).json(), {});
    await ended(service, running);
    assert.equal((await ended(service, front)).status.status_str, "success");
  });

  it("history: newest entries in the order of their starts, deleted ones gone", async () => {
    const service = await start();
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) {
      const { prompt_id: id } = await submit(service, quick(i));
      await ended(service, id);
      ids.push(id);
    }
    const list = async (query = "") => Object.keys((await (await service.get(`/history${query}`)).json()) as object);
    assert.deepEqual(await list(), ids);
    assert.deepEqual(await list("?max_items=2"), ids.slice(2));
    assert.deepEqual(await list("?max_items=2&offset=1"), ids.slice(1, 3));
    assert.equal((await service.get("/history?max_items=x")).status, 400);
    await service.post("/history", { delete: [ids[1]] });
    assert.deepEqual(await list(), [ids[0], ids[2], ids[3]]);
    await service.post("/history", { clear: true });
    assert.deepEqual(await list(), []);
    // a run of a hook is no prompt
    const { run_id } = await service.start("hello");
    assert.deepEqual(await (await service.get(`/history/${run_id}`)).json(), {});
  });

  it("view: previews and channels; never a file of another run or folder", async () => {
    const service = await start();
    const { prompt_id: id } = await submit(service, picture(1));
    const entry = await ended(service, id);
    const plain = await service.get(viewOf(entry));
    assert.equal(plain.headers.get("content-disposition"), 'filename="fox_00001_.png"');
    assert.equal(plain.headers.get("content-type"), "image/png");
    const webp = await service.get(viewOf(entry, { preview: "webp;80" }));
    assert.equal(webp.headers.get("content-type"), "image/webp");
    assert.equal(Buffer.from(await webp.arrayBuffer()).toString("latin1", 8, 12), "WEBP");
    const alpha = await decodePng(
      Buffer.from(await (await service.get(viewOf(entry, { channel: "a" }))).arrayBuffer()),
    );
    assert.deepEqual([alpha.channels, ...alpha.data.subarray(0, 4)], [4, 0, 0, 0, 255]);
    assert.equal((await service.get(viewOf(entry, { channel: "x" }))).status, 400);
    for (const filename of ["../x", "/etc/passwd", "..", "a\\b"]) {
      assert.equal((await service.get(viewOf(entry, { filename }))).status, 400, filename);
    }
    assert.equal((await service.get(viewOf(entry, { filename: "other.png" }))).status, 404);
    assert.equal((await service.get(viewOf(entry, { subfolder: "../.." }))).status, 400);
    assert.equal((await service.get(viewOf(entry, { subfolder: "" }))).status, 404);
    // of a hook: its own routes serve it
    const { run_id } = await service.start("hello");
    await until(async () => (await service.hooks.runs.status(run_id)).finishedAt !== null, "the end");
    const hooked = new URLSearchParams({ filename: "quick_00001_.png", subfolder: `runs/${run_id}` });
    assert.equal((await service.get(`/view?${hooked}`)).status, 404);
  });

  it("uploads: equal bytes keep their name, others get a number; outputs are inputs", async () => {
    const service = await start({ limits: { upload_bytes: 10_000 } });
    const [one, two] = [await png(3, 1), await png(3, 2)];
    const named = async (response: Response) => ((await response.json()) as { name: string }).name;
    assert.equal(await named(await upload(service, one, "a.png")), "a.png");
    assert.equal(await named(await upload(service, one, "a.png")), "a.png");
    assert.equal(await named(await upload(service, two, "a.png")), "a (1).png");
    assert.equal(await named(await upload(service, two, "a.png", { overwrite: "true" })), "a.png");
    assert.deepEqual(await (await upload(service, one, "C:\\a.png", { subfolder: "deep/er" })).json(), {
      ...{ name: "a.png", subfolder: "deep/er", type: "input" },
    });
    for (const fields of [{ subfolder: ".." }, { subfolder: "/etc" }, { type: "models" }]) {
      assert.equal((await upload(service, one, "a.png", fields as never)).status, 400);
    }
    assert.equal((await upload(service, new Uint8Array(20_000), "big.png")).status, 413);
    const { prompt_id: id } = await submit(service, copyOf("deep/er/a.png"));
    const entry = await ended(service, id);
    assert.match(JSON.stringify(entry.prompt[2]), /"image":"deep\/er\/a.png"/);
    const { filename, subfolder } = entry.outputs["9"]!.images![0]!;
    const { text, data } = await decodePng(Buffer.from(await (await service.get(viewOf(entry))).arrayBuffer()));
    assert.equal(data[0], 1);
    assert.match(text.prompt!, /"image": "deep\/er\/a.png"/);
    const { prompt_id: next } = await submit(service, copyOf(`${subfolder}/${filename} [output]`));
    assert.equal((await ended(service, next)).status.status_str, "success");
  });

  it("the editor's format is converted, and goes into the pictures", async () => {
    const service = await start();
    const workflow = {
      ...{ last_node_id: 2, last_link_id: 1, version: 0.4, groups: [], config: {}, extra: {} },
      nodes: [
        {
          ...{ id: 1, type: "EmptyImage", mode: 0, inputs: [], widgets_values: [8, 8, 1, 255] },
          outputs: [{ name: "IMAGE", type: "IMAGE", links: [1] }],
        },
        {
          ...{ id: 9, type: "SaveImage", mode: 0, outputs: [], widgets_values: ["editor"] },
          inputs: [{ name: "images", type: "IMAGE", link: 1 }],
        },
      ],
      links: [[1, 1, 0, 9, 0, "IMAGE"]],
    };
    const { prompt_id: id } = await submit(service, workflow);
    const entry = await ended(service, id);
    const { text } = await decodePng(Buffer.from(await (await service.get(viewOf(entry))).arrayBuffer()));
    assert.deepEqual(JSON.parse(text.workflow!).links, workflow.links);
    const { prompt_id: other } = await submit(service, quick(), {
      extra_data: { extra_pnginfo: { workflow: { big: 1 } }, api_key_comfy_org: "secret" },
    });
    const shown = await ended(service, other);
    assert.deepEqual(shown.prompt[3], { extra_pnginfo: { workflow: { big: 1 } } });
    const reserved = { extra_data: { extra_pnginfo: { prompt: "forged" } } };
    assert.equal((await service.post("/prompt", { prompt: quick(), ...reserved })).status, 400);
  });

  it("describes nodes, models and machine; unknown nodes are empty, unknown paths plain 404", async () => {
    const service = await start();
    const json = async (path: string) => (await service.get(path)).json() as Promise<Record<string, never>>;
    const all = (await json("/object_info")) as Record<string, { input: { required: Record<string, unknown[]> } }>;
    const { checkpoints } = { checkpoints: [...createPreviewHost().checkpoints()] };
    assert.deepEqual(all.CheckpointLoaderSimple!.input.required.ckpt_name![0], checkpoints);
    assert.deepEqual(Object.keys(await json("/api/object_info/KSampler")), ["KSampler"]);
    assert.deepEqual(await json("/object_info/Primitive%20boolean"), {});
    assert.deepEqual(await json("/models/checkpoints"), checkpoints);
    assert.equal((await service.get("/models/__proto__")).status, 404);
    assert.ok(((await json("/models")) as unknown as string[]).includes("checkpoints"));
    assert.deepEqual([await json("/embeddings"), await json("/extensions")], [[], []]);
    assert.ok((await json("/system_stats")).system);
    assert.equal((await service.get("/manager/version")).status, 404);
  });

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
