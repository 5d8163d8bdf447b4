import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { startService } from "latentkit/service";
import { parseConfig } from "#src/render/config/config.js";
import { refuses } from "../../../helpers/errors.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { eventsOf } from "../../../helpers/http/sse-reader.js";
import { tinyModels } from "../../../helpers/models/tiny-host.js";

describe("startService", () => {
  const folder = temporaryFolder();
  const lines: string[] = [];
  const start = (config: object) => {
    const output_dir = join(folder(), "out");
    const whole = parseConfig({ port: 0, store: "memory:", output_dir, ...config }, "test");
    return startService(whole, { log: (line) => void lines.push(line) });
  };

  it("without a token it listens on loopback addresses only", async () => {
    for (const host of ["127.0.0.1", "127.0.0.2", "::1", "localhost"]) {
      const service = await start({ host });
      assert.deepEqual([service.hasToken, service.takesText], [false, true]);
      assert.equal((await fetch(`${service.url}/health`)).status, 200);
      await service.close();
      await assert.rejects(fetch(`${service.url}/health`));
    }
    for (const host of ["0.0.0.0", "::", "::ffff:0.0.0.0", "192.168.0.1", "127.0.0.1.example.com", "localhost."]) {
      await refuses(start({ host }), "config.invalid", /loopback/);
      await refuses(start({ host, channels: { web: { hooks_token: " \t" } } }), "config.invalid", /loopback/);
    }
    const hooks_token = ["", "a token of length"];
    const open = await start({ host: "0.0.0.0", channels: { web: { hooks_token } } });
    assert.equal(open.hasToken, true);
    await open.close();
  });

  it("tells that its graph has nothing to fill, at the start and after a reload", async () => {
    lines.splice(0);
    const image = { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color: 0 } };
    const save = { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "x" } };
    const graph = join(folder(), "fixed.json");
    writeFileSync(graph, JSON.stringify({ 1: image, 2: save }));
    const service = await start({ agent: { graph } });
    const warnings = () => lines.filter((line) => line.includes('graph \\"default\\" has nothing to fill')).length;
    assert.deepEqual([service.takesText, warnings()], [false, 1]);
    service.reload(parseConfig({ agent: { graph } }, "test"));
    assert.equal(warnings(), 2);
    await service.close();
  });

  it("warns if an earlier process has paused the queue", async () => {
    const hooks_token = "a token of length";
    const config = { store: `sqlite:${join(folder(), "runs.db")}`, channels: { web: { hooks_token } } };
    const init = { method: "POST", headers: { authorization: `Bearer ${hooks_token}` } };
    const first = await start(config);
    assert.equal((await fetch(`${first.url}/api/queue/pause`, init)).status, 200);
    await first.close();
    const isWarned = () => lines.some((line) => line.includes("the queue is paused"));
    assert.equal(isWarned(), false);
    const next = await start(config);
    assert.equal(isWarned(), true);
    const { paused } = (await (await fetch(`${next.url}/api/queue/resume`, init)).json()) as { paused: boolean };
    assert.equal(paused, false);
    await next.close();
  });

  it("responds while a node of a run with models holds its thread", async () => {
    const hooks_token = "a token of length";
    const nodes = {
      1: { class_type: "EmptyImage", inputs: { width: 2048, height: 2048, batch_size: 1, color: 0 } },
      2: { class_type: "ImageBlur", inputs: { image: ["1", 0], blur_radius: 31, sigma: 10 } },
      3: { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "x" } },
    };
    const graph = join(folder(), "blur.json");
    writeFileSync(graph, JSON.stringify(nodes));
    const service = await start({ models: [tinyModels()], agent: { graph }, channels: { web: { hooks_token } } });
    const headers = { authorization: `Bearer ${hooks_token}`, "content-type": "application/json" };
    const posted = await fetch(`${service.url}/hooks/agent`, { method: "POST", headers, body: '{"message":"{}"}' });
    const { stream_url } = (await posted.json()) as { stream_url: string };
    let isBlurring = false;
    let isOver = false;
    const reading = (async () => {
      for await (const { event, data } of eventsOf(await fetch(service.url + stream_url))) {
        const { node } = data as { node?: string };
        if (node === "2") isBlurring = event === "node_start";
        if (event === "done") return;
        assert.ok(!event.endsWith("error"), JSON.stringify(data));
      }
    })().finally(() => {
      isOver = true;
    });
    let responses = 0;
    while (!isOver) {
      const wasBlurring = isBlurring;
      assert.equal((await fetch(`${service.url}/health`)).status, 200);
      if (wasBlurring && isBlurring) responses++;
    }
    await reading;
    await service.close();
    assert.ok(responses >= 5, `${responses} responses while the node ran`);
  });

  it("refuses folders of models that do not exist, and lists those that do", async () => {
    await refuses(start({ models: [join(folder(), "none")] }), "config.invalid", /none/);
    const channels = { web: { hooks_token: "a token of length" } };
    const service = await start({ models: [tinyModels()], channels });
    const headers = { authorization: "Bearer a token of length" };
    const { nodes } = (await (await fetch(`${service.url}/api/page/nodes`, { headers })).json()) as { nodes: object[] };
    assert.match(JSON.stringify(nodes), /tiny-sd1\.safetensors/);
    await service.close();
  });

  it("reachable address: refuses a token under 16 characters, unquoted", async () => {
    const sentence = /hooks_token: must have at least 16 characters .*host "0\.0\.0\.0" .*; received 15\.$/;
    for (const hooks_token of ["fifteen letters", " fifteen letters ", ["a token of length", "fifteen letters"]]) {
      const config = { host: "0.0.0.0", channels: { web: { hooks_token } } };
      await refuses(start(config), "config.invalid", sentence);
      await assert.rejects(start(config), (error) => !String(error).includes("letters"));
      const local = await start({ ...config, host: "127.0.0.1" });
      await local.close();
    }
  });

  it("accepts a partial configuration, refuses other values", async () => {
    const output_dir = join(folder(), "out");
    const service = await startService({ port: 0, store: "memory:", output_dir }, { log: () => {} });
    assert.equal((await fetch(`${service.url}/health`)).status, 200);
    await service.close();
    await refuses(startService({ ports: 0 } as object), "config.invalid", /startService: unknown key "ports".*"port"/);
    for (const none of [undefined, null, [], "secret"]) {
      const { message } = await refuses(startService(none as never), "config.invalid", /expected a configuration/);
      assert.doesNotMatch(message, /secret/);
    }
  });

  it("leaves nothing open when it fails", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const store = `sqlite:${join(folder(), "runs.db")}`;
    await refuses(start({ store, port }), "config.invalid", new RegExp(`port ${port}: .*EADDRINUSE`));
    other.close();
    const service = await start({ store });
    await refuses(start({ store }), "config.invalid", /runs\.db/);
    await service.close();
    await (await start({ store })).close();
  });

  it("logs any thrown value without throwing", async () => {
    const service = await start({});
    const trap = (): never => {
      throw new Error("trap");
    };
    const before = lines.length;
    const thrown = [new Proxy({}, { get: trap, getPrototypeOf: trap, ownKeys: trap }), Symbol("s"), null, "text"];
    for (const error of thrown) service.fault("unhandled rejection", error);
    service.crash(Object.assign(new Error("x"), { stack: { toString: trap } }));
    const logged = lines.slice(before).map((line) => JSON.parse(line) as { err: { message: string } });
    assert.deepEqual(
      logged.map(({ err }) => err.message),
      ["an error that cannot be shown", "Symbol(s)", "null", "text", "x"],
    );
    await service.close();
  });

  it("names a store or agent that is not available", async () => {
    await refuses(
      start({ store: "postgres://user:secret@127.0.0.1:1/db" }),
      "config.invalid",
      /^Cannot open the PostgreSQL store at postgres:\/\/127\.0\.0\.1:1\/db: .*ECONNREFUSED/,
    );
    await refuses(start({ agent: { module: join(folder(), "none.mjs") } }), "config.invalid", /none\.mjs/);
    await refuses(start({ agent: { graph: join(folder(), "none.json") } }), "file.not-found", /none\.json/);
    assert.equal(lines.join("").includes("secret"), false);
  });
});
