import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import express from "express";
import { createGraphAgent, createHookService } from "latentkit/hooks";
import { createLogger } from "latentkit/service";
import type { Agent } from "#src/service/agent/agent.js";
import { fileUrl, mountFileUrls } from "#src/service/hooks/run.js";
import { root, temporaryFolder } from "../../../helpers/folders.js";
import { growsLinearly } from "../../../helpers/growth.js";
import { bearer, TOKEN, until } from "../../../helpers/hooks/hook-service.js";
import { readEvents } from "../../../helpers/http/sse-reader.js";

describe("mountFileUrls", () => {
  const url = fileUrl("7", "a b.png");

  it("puts the mount path before the run's file paths, in JSON and in texts", () => {
    const data = JSON.stringify({ url, html: `<img src="${url}">`, text: `see\n${url}\n(${url})`, list: [url, url] });
    const mounted = JSON.parse(mountFileUrls(data, "/automation", "7"));
    const full = `/automation${url}`;
    assert.deepEqual(mounted, {
      url: full,
      html: `<img src="${full}">`,
      text: `see\n${full}\n(${full})`,
      list: [full, full],
    });
    assert.equal(mountFileUrls(url, "/automation", "7"), full);
    const nested = JSON.stringify({ response: JSON.stringify([{ url }]) });
    assert.deepEqual(JSON.parse(JSON.parse(mountFileUrls(nested, "/a", "7")).response), [{ url: `/a${url}` }]);
  });

  it("leaves other runs, other paths and complete addresses as they are", () => {
    for (const text of [
      fileUrl("8", "a.png"),
      "/api/runs/7",
      `https://example.com${url}`,
      `https://example.com:8188${url}`,
      `/mine${url}`,
      `c:\\\\n${url}`,
    ]) {
      assert.equal(mountFileUrls(text, "/automation", "7"), text);
    }
    assert.equal(mountFileUrls(url, "", "7"), url);
  });

  it("stays JSON whatever the mount path holds", () => {
    const mounted = mountFileUrls(JSON.stringify({ url }), '/a"b\\c', "7");
    assert.deepEqual(JSON.parse(mounted), { url: `/a%22b%5Cc${url}` });
  });

  it("takes linear time", () =>
    growsLinearly(
      2500,
      (length) => JSON.stringify(Array.from({ length }, () => url)),
      (text) => assert.ok(mountFileUrls(text, "/automation", "7").length > text.length),
    ));
});

describe("files of a run behind a mounted router", () => {
  const folder = temporaryFolder();
  const open: { server: Server; close: () => Promise<void> }[] = [];
  afterEach(async () => {
    for (const { server, close } of open.splice(0)) {
      await close();
      server.closeAllConnections();
      server.close();
    }
  });

  async function mounted(agent: Agent, paths: readonly string[]) {
    const logger = createLogger({ level: "silent" });
    const hooks = createHookService({ agent, config: { hooks_token: TOKEN }, logger });
    const app = express();
    for (const path of paths) app.use(path, hooks.router);
    const server = app.listen(0, "127.0.0.1");
    open.push({ server, close: () => hooks.close(0) });
    await until(() => server.listening);
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const started = async (url: string) => {
    const headers = { ...bearer, "content-type": "application/json" };
    const response = await fetch(`${url}/hooks/agent`, { method: "POST", headers, body: '{"message":"fox"}' });
    return (await response.json()) as { run_id: string; stream_url: string; status_url: string };
  };

  const statusOf = async (url: string) => {
    let status: { done: boolean; response: string } | undefined;
    await until(async () => {
      status = (await (await fetch(url, { headers: bearer })).json()) as typeof status;
      return status!.done;
    });
    return status!;
  };

  it("have working URLs for each mount path, in events and status", async () => {
    const path = join(folder(), "a b.txt");
    writeFileSync(path, "content");
    const agent: Agent = async (_run, { addFile, emit }) => {
      const { url } = addFile({ path });
      emit("file", { url });
      return { response: JSON.stringify([{ url }]) };
    };
    const url = await mounted(agent, ["/automation", "/other/place"]);
    const { run_id } = await started(`${url}/automation`);
    for (const base of ["/automation", "/other/place", "/automation"]) {
      const events = await readEvents(await fetch(`${url}${base}/api/stream?run_id=${run_id}`, { headers: bearer }));
      const fileEvent = events.find(({ event }) => event === "file")!.data as { url: string };
      const [inDone] = JSON.parse((events.at(-1)!.data as { response: string }).response) as { url: string }[];
      const status = await statusOf(`${url}${base}/api/runs/${run_id}`);
      const [inStatus] = JSON.parse(status.response) as { url: string }[];
      for (const file of [fileEvent, inDone!, inStatus!]) {
        assert.equal(file.url, `${base}/api/runs/${run_id}/files/a%20b.txt`);
        assert.equal(await (await fetch(url + file.url, { headers: bearer })).text(), "content");
      }
    }
  });

  it("of a graph can be fetched by the URLs in its events and response", async () => {
    const graph = {
      1: { class_type: "LoadImage", inputs: { image: "lake.png" } },
      2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "{{message}}" } },
    };
    const inputDir = join(root, "test/graphs/input");
    const agent = createGraphAgent({ graph, outputDir: join(folder(), "out"), inputDir, threads: 1 });
    const url = await mounted(agent, ["/automation"]);
    const { stream_url, run_id } = await started(`${url}/automation`);
    const events = await readEvents(await fetch(url + stream_url));
    const image = events.find(({ event }) => event === "image")!.data as { url: string };
    assert.match(image.url, new RegExp(`^/automation/api/runs/${run_id}/files/fox`));
    const response = await fetch(url + image.url + stream_url.slice(stream_url.indexOf("?")));
    assert.deepEqual([response.status, response.headers.get("content-type")], [200, "image/png"]);
    await response.arrayBuffer();
    assert.ok((events.at(-1)!.data as { response: string }).response.includes(image.url));
    await agent.close();
  });
});
