import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../helpers/folders.js";
import { TOKEN } from "../../../helpers/page/open-page.js";
import { pageServiceStarter, postMessage } from "../../../helpers/page/page-service.js";

const headers = { Authorization: `Bearer ${TOKEN}` };

/** JSON of a response with the token. */
async function json<T>(address: string, init: RequestInit = {}): Promise<{ status: number; body: T }> {
  const response = await fetch(address, { ...init, headers: { ...headers, ...init.headers } });
  return { status: response.status, body: (await response.json()) as T };
}

interface Pictures {
  pictures: { run_id: string; name: string; url: string }[];
  next_cursor: string | null;
}

describe("web routes", () => {
  const { start } = pageServiceStarter();
  const run = async (url: string, message: string) => {
    const body = JSON.stringify({ message });
    const wait = { "Content-Type": "application/json", Prefer: "wait=60" };
    return (await json<{ run_id: string }>(`${url}/hooks/agent`, { method: "POST", headers: wait, body })).body.run_id;
  };

  it("all but the page itself and whether there is a token need the token", async () => {
    const { url } = await start();
    for (const path of ["page/pictures", "page/address?run_id=x", "page/nodes", "page/models", "graphs"]) {
      assert.equal((await fetch(`${url}/api/${path}`)).status, 401, path);
    }
    assert.equal((await fetch(`${url}/api/page/inspect`, { method: "POST", body: "{}" })).status, 401);
    const about = await fetch(`${url}/api/page/about`);
    assert.deepEqual(await about.json(), { ok: true, is_configured: true });
  });

  it("pictures: newest first, by pages, with addresses that open them without the token", async () => {
    const { url } = await start();
    const ids = [await run(url, "one"), await run(url, "two"), await run(url, "three")];
    const first = (await json<Pictures>(`${url}/api/page/pictures?limit=2`)).body;
    assert.deepEqual(
      first.pictures.map(({ run_id }) => run_id),
      [ids[2], ids[1]],
    );
    const rest = (await json<Pictures>(`${url}/api/page/pictures?cursor=${first.next_cursor}`)).body;
    assert.deepEqual(
      rest.pictures.map(({ run_id }) => run_id),
      [ids[0]],
    );
    assert.equal(rest.next_cursor, null);
    const response = await fetch(`${url}/${first.pictures[0]!.url}`);
    assert.equal(response.headers.get("content-type"), "image/png");
    assert.equal((await fetch(`${url}/${first.pictures[0]!.url.replace(ids[2]!, ids[1]!)}`)).status, 401);
    assert.equal((await json(`${url}/api/page/pictures?limit=none`)).status, 400);
  });

  it("address: opens the stream of one run; refuses a run that is not there", async () => {
    const { url } = await start();
    const id = await run(url, "one");
    const { body } = await json<{ query: string }>(`${url}/api/page/address?run_id=${id}`);
    assert.match(await (await fetch(`${url}/api/stream?run_id=${id}&${body.query}`)).text(), /event: done/);
    assert.equal((await json(`${url}/api/page/address?run_id=${crypto.randomUUID()}`)).status, 404);
    assert.equal((await json(`${url}/api/page/address`)).status, 400);
  });

  it("stream_auth none: addresses without a signature", async () => {
    const { url } = await start({ channels: { web: { hooks_token: TOKEN, stream_auth: "none" } } });
    const id = await run(url, "one");
    const { body } = await json<{ query: string }>(`${url}/api/page/address?run_id=${id}`);
    assert.equal(body.query, "");
    const { pictures } = (await json<Pictures>(`${url}/api/page/pictures`)).body;
    assert.equal(pictures[0]!.url, `api/runs/${id}/files/hook_00001_.png`);
  });

  it("inspects a picture and JSON; refuses what is too large, and says what is no graph", async () => {
    const { url } = await start();
    const inspect = (body: Uint8Array<ArrayBuffer> | string) =>
      json<{ format: string; graph: { nodes: object[] } | null; problem: string | null; receipt: object | null }>(
        `${url}/api/page/inspect`,
        { method: "POST", body, headers: { "Content-Type": "application/octet-stream" } },
      );
    const picture = await inspect(new Uint8Array(readFileSync(join(root, "docs/first-light/2-noise_00001_.png"))));
    assert.equal(picture.body.format, "png");
    assert.equal(picture.body.graph!.nodes.length, 20);
    assert.ok(picture.body.receipt !== null);
    const graph = await inspect(readFileSync(join(root, "examples/hook.json"), "utf8"));
    assert.equal(graph.body.format, "json");
    assert.equal(graph.body.graph!.nodes.length, 11);
    const wrong = await inspect("[]");
    assert.equal(wrong.status, 200);
    assert.equal(wrong.body.graph, null);
    assert.match(wrong.body.problem!, /Graph/);
    assert.equal((await inspect(new Uint8Array(33 * 2 ** 20))).status, 413);
  });

  it("fills a graph, where any may be run, for a job of the Comfy API", async () => {
    const closed = await start();
    const init = (body: string, type = "application/octet-stream") => ({
      method: "POST",
      body,
      headers: { "Content-Type": type },
    });
    const graph = readFileSync(join(root, "examples/text-to-image.json"), "utf8");
    const body = `{"graph":${graph},"values":{"2.text":"a blue lake"}}`;
    assert.equal((await fetch(`${closed.url}/api/page/fill`, { ...init(body) })).status, 404);
    const { url } = await start({ channels: { web: { hooks_token: TOKEN, comfy_api: true } } });
    assert.equal((await fetch(`${url}/api/page/fill`, { ...init(body) })).status, 401);
    const filled = await json<{ workflow: Record<string, { inputs: { text: string } }> }>(
      `${url}/api/page/fill`,
      init(body),
    );
    assert.equal(filled.body.workflow[2]!.inputs.text, "a blue lake");
    const wrong = await json<{ error: string }>(`${url}/api/page/fill`, init('{"graph":{"1":7},"values":{}}'));
    assert.equal(wrong.status, 400);
    assert.match(wrong.body.error, /node/i);
    const job = await json<{ id: string }>(`${url}/api/v2/jobs`, {
      ...init(JSON.stringify(filled.body), "application/json"),
    });
    assert.equal(job.status, 201);
  });

  it("at most four inspections at once", async () => {
    const { url } = await start();
    const deep = `${"[".repeat(400_000)}`;
    const responses = await Promise.all(
      Array.from({ length: 12 }, () =>
        json<{ code?: string }>(`${url}/api/page/inspect`, { method: "POST", body: deep }),
      ),
    );
    const statuses = responses.map(({ status }) => status);
    assert.ok(statuses.includes(429));
    assert.ok(statuses.includes(200));
    assert.ok(statuses.every((status) => status === 200 || status === 429));
  });

  it("nodes, models and graphs of a service", async () => {
    const { url } = await start();
    const { nodes } = (await json<{ nodes: { name: string }[] }>(`${url}/api/page/nodes`)).body;
    assert.ok(nodes.some(({ name }) => name === "KSampler"));
    assert.deepEqual((await json(`${url}/api/page/models`)).body, {
      ok: true,
      has_folders: false,
      is_complete: true,
      models: [],
    });
    const { graphs } = (await json<{ graphs: { schema: { required: string[] } }[] }>(`${url}/api/graphs`)).body;
    assert.deepEqual(graphs[0]!.schema.required, ["message"]);
    const slow = await start({}, { isSlow: true });
    assert.deepEqual((await json(`${slow.url}/api/graphs`)).body, { ok: true, graphs: [] });
    await postMessage(slow.url, "work 1");
  });
});
