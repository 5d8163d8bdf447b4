import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { decodePng } from "latentkit";
import { startService } from "latentkit/service";
import { refuses } from "../../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import {
  classicStarter,
  ended,
  picture,
  quick,
  refusedSocket,
  socketTo,
  submit,
} from "../../../../../helpers/hooks/classic-service.js";
import { FakeClock } from "../../../../../helpers/hooks/fake-clock.js";
import { bearer, scriptedAgent, serviceStarter, until } from "../../../../../helpers/hooks/hook-service.js";

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
