import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHookService } from "latentkit/hooks";
import { createLogger, createServer } from "latentkit/service";
import { createServiceWithRoutes } from "#src/service/hooks/service.js";
import { pageRoutes } from "#src/service/web/routes.js";
import { root, temporaryFolder } from "../../../helpers/folders.js";
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
  const { start, folder } = pageServiceStarter();
  const run = async (url: string, message: string) => {
    const body = JSON.stringify({ message });
    const wait = { "Content-Type": "application/json", Prefer: "wait=60" };
    return (await json<{ run_id: string }>(`${url}/hooks/agent`, { method: "POST", headers: wait, body })).body.run_id;
  };

  it("all but the page itself and whether there is a token need the token", async () => {
    const { url } = await start();
    for (const path of [
      "page/runs",
      "page/run?run_id=x",
      "page/form?run_id=x",
      "page/pictures",
      "page/address?run_id=x",
      "page/nodes",
      "page/models",
      "graphs",
    ]) {
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

  interface Runs {
    runs: { run_id: string; title: string; thumbnail: string | null; models: string[] }[];
    next_cursor: string | null;
    from: number;
    to: number;
  }

  it("runs: called by their messages, with a picture; found by words, state and model, page by page", async () => {
    const { url } = await start();
    const ids = [await run(url, "a quiet lake"), await run(url, "a red fox"), await run(url, "a stormy lake")];
    const list = async (query: string) => (await json<Runs>(`${url}/api/page/runs?${query}`)).body;
    const all = await list("");
    assert.deepEqual(
      all.runs.map(({ title }) => title),
      ["a stormy lake", "a red fox", "a quiet lake"],
    );
    assert.deepEqual([all.next_cursor, all.from, all.to], [null, 3, 0]);
    assert.deepEqual(all.runs[0]!.models, ["preview-sd15.safetensors"]);
    assert.equal((await fetch(`${url}/${all.runs[0]!.thumbnail}`)).headers.get("content-type"), "image/png");
    const expiry = Number(new URLSearchParams(all.runs[0]!.thumbnail!.split("?")[1]).get("expires"));
    assert.ok(
      expiry > Date.now() / 1000 + 3500 && expiry % 1800 === 0,
      "a list that is asked for again has the same address",
    );
    const first = await list("search=LAKE%20preview&limit=1&state=succeeded");
    assert.deepEqual([first.runs.map(({ run_id }) => run_id), first.from, first.to], [[ids[2]], 3, 3]);
    const second = await list(`search=lake&limit=1&cursor=${first.next_cursor}`);
    assert.deepEqual(
      second.runs.map(({ run_id }) => run_id),
      [ids[0]],
    );
    for (const query of ["search=lake%20fox", "state=failed", "search=%25"]) {
      assert.deepEqual((await list(query)).runs, [], query);
    }
    assert.equal((await json(`${url}/api/page/runs?serach=x`)).status, 400);
    assert.equal((await json(`${url}/api/page/runs?search=${"x".repeat(201)}`)).status, 400);
    const filtered = async (query: string) => (await json<Pictures>(`${url}/api/page/pictures?${query}`)).body.pictures;
    assert.equal((await filtered("search=fox&model=preview-sd15.safetensors")).length, 1);
    assert.equal((await filtered("model=other")).length, 0);
    assert.equal((await filtered(`from=${Date.now() + 60_000}`)).length, 0);
    assert.equal((await filtered(`from=0&to=${Date.now() + 60_000}`)).length, 3);
    assert.equal((await json(`${url}/api/page/pictures?from=yesterday`)).status, 400);
  });

  it("run and form: what a run was started with, and the fields to start it again", async () => {
    const { url } = await start({ channels: { web: { hooks_token: TOKEN, comfy_api: true } } });
    const id = await run(url, "a quiet lake");
    const { body } = await json<{ title: string; values: [string, string][] }>(`${url}/api/page/run?run_id=${id}`);
    assert.equal(body.title, "a quiet lake");
    assert.deepEqual(body.values[0], ["message", "a quiet lake"]);
    const form = (path: string) =>
      json<{ parameters: { key: string }[]; values: Record<string, string>; text: string | null }>(
        `${url}/api/page/form?run_id=${path}`,
      );
    const own = (await form(id)).body;
    assert.deepEqual(
      [own.parameters.map(({ key }) => key), own.values, own.text],
      [["message", "seed", "steps", "width", "height"], { message: "a quiet lake" }, null],
    );
    const graph = readFileSync(join(root, "examples/text-to-image.json"), "utf8");
    const job = await json<{ id: string }>(`${url}/api/v2/jobs?tag=x0%20a&tag=batch%201&tag=batch%201`, {
      method: "POST",
      body: `{"workflow":${graph}}`,
      headers: { "Content-Type": "application/json" },
    });
    const brought = (await form(job.body.id)).body;
    assert.equal(brought.values["2.text"], "a red fox in a green forest under a blue sky");
    assert.ok(brought.text!.includes("KSampler"));
    const { tags } = (await json<{ tags: string[] }>(`${url}/api/runs/${job.body.id}`)).body;
    assert.deepEqual([...tags].sort(), ["batch 1", "x0 a"]);
    for (const path of [crypto.randomUUID(), "x"]) {
      assert.equal((await form(path)).status, 404);
      assert.equal((await json(`${url}/api/page/run?run_id=${path}`)).status, 404);
    }
    const slow = await start({}, { isSlow: true });
    const plain = await run(slow.url, "work 1");
    const answer = (await json(`${slow.url}/api/page/form?run_id=${plain}`)).body;
    assert.deepEqual(answer, { ok: true, parameters: null, values: { message: "work 1" }, text: null });
  });

  it("deletes a picture of an ended run if that is allowed, and nothing else", async () => {
    const remove = (url: string, query: string) =>
      json<{ error: string }>(`${url}/api/page/picture?${query}`, { method: "DELETE" });
    const closed = await start();
    const kept = await run(closed.url, "one");
    assert.equal((await remove(closed.url, `run_id=${kept}&name=hook_00001_.png`)).status, 404);
    const foreign = join(folder(), "foreign.png");
    writeFileSync(foreign, "a stranger's picture");
    const module = join(folder(), "files.mjs");
    const agent = `import { writeFileSync } from "node:fs";
      export default async ({ message }, { addFile, signal }) => {
        for (const path of JSON.parse(message)) {
          if (path.includes("out")) writeFileSync(path, "bytes");
          addFile({ path });
        }
        return { response: "" };
      };`;
    writeFileSync(module, agent);
    const { url } = await start({ agent: { module }, page_delete: true });
    mkdirSync(join(folder(), "out"), { recursive: true });
    const [picture, notes] = [join(folder(), "out/a.png"), join(folder(), "out/notes.txt")];
    const id = await run(url, JSON.stringify([picture, notes, foreign]));
    assert.equal((await fetch(`${url}/api/page/picture?run_id=${id}&name=a.png`, { method: "DELETE" })).status, 401);
    assert.equal((await remove(url, `run_id=${id}&name=notes.txt`)).status, 400);
    assert.equal((await remove(url, `run_id=${id}&name=foreign.png`)).status, 404);
    assert.equal((await remove(url, `run_id=${id}&name=..%2Fa.png`)).status, 404);
    assert.equal((await remove(url, `run_id=${id}`)).status, 400);
    assert.deepEqual([picture, notes, foreign].map(existsSync), [true, true, true]);
    const list = async () => (await json<Pictures>(`${url}/api/page/pictures`)).body.pictures.map(({ name }) => name);
    assert.deepEqual(await list(), ["foreign.png", "a.png"]);
    assert.equal((await remove(url, `run_id=${id}&name=a.png`)).status, 200);
    assert.equal(existsSync(picture), false);
    assert.deepEqual(await list(), ["foreign.png"]);
    assert.equal((await remove(url, `run_id=${id}&name=a.png`)).status, 404);
    await assert.rejects(
      start({ page_delete: true, files: "s3://renders/a?endpoint=http://127.0.0.1:1" }),
      /page_delete cannot be combined with `files`/,
    );
  });

  it("a job's tags that are none are refused", async () => {
    const { url } = await start({ channels: { web: { hooks_token: TOKEN, comfy_api: true } } });
    for (const query of [
      "tag=",
      `tag=${"x".repeat(65)}`,
      "tag=a%00b",
      Array.from({ length: 17 }, (_, i) => `tag=${i}`).join("&"),
    ]) {
      const init = { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } };
      const { status, body } = await json<{ error: { message: string } }>(`${url}/api/v2/jobs?${query}`, init);
      assert.match(`${status} ${body.error.message}`, /^4\d\d tag: expected/, query);
    }
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

  it("inspects a picture and JSON; refuses what is too large, and reports anything but a graph", async () => {
    const { url } = await start();
    const inspect = (body: Uint8Array<ArrayBuffer> | string) =>
      json<{ format: string; graph: { nodes: object[] } | null; problem: string | null; receipt: object | null }>(
        `${url}/api/page/inspect`,
        { method: "POST", body, headers: { "Content-Type": "application/octet-stream" } },
      );
    const picture = await inspect(new Uint8Array(readFileSync(join(root, "docs/first-light/2-noise_00001_.png"))));
    assert.equal(picture.body.format, "png");
    assert.equal(picture.body.graph!.nodes.length, 26);
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

  it("fills a graph, if any may be run, for a job of the Comfy API", async () => {
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

const agent = async () => ({ response: "" });
// without a token it would warn
const logger = createLogger({ level: "silent" });

describe("page routes", () => {
  const folder = temporaryFolder();
  const { start } = pageServiceStarter();

  it("page: open to all, by a strict policy, at most 80 kB of compressed script", async () => {
    const { url } = await start();
    const response = await fetch(url);
    assert.equal(response.status, 200);
    const policy = response.headers.get("content-security-policy")!;
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    assert.doesNotMatch(policy, /unsafe|\*|http/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.equal(response.headers.get("referrer-policy"), "no-referrer");
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.equal(response.headers.get("cache-control"), "no-cache");
    const html = await response.text();
    const names = [...html.matchAll(/(?:src|href)="\.\/(page\/[^"]+)"/g)].map(([, name]) => name!);
    assert.ok(names.length >= 3);
    for (const name of names) {
      assert.match(name, /-[\w-]{8}\.\w+$/);
      const file = await fetch(`${url}/${name}`, { headers: { "Accept-Encoding": "gzip" } });
      assert.equal(file.status, 200);
      assert.equal(file.headers.get("cache-control"), "public, max-age=31536000, immutable");
      assert.equal(file.headers.get("content-encoding"), "gzip");
      assert.ok(Number(file.headers.get("content-length")) < 80_000);
    }
  });

  it("other methods and names are refused; HEAD has no body", async () => {
    const { url } = await start();
    assert.equal((await fetch(url, { method: "POST" })).status, 405);
    assert.equal(await (await fetch(url, { method: "HEAD" })).text(), "");
    for (const name of ["nothing.js", "..%2Findex.html", "%2e%2e%2fpackage.json", "__proto__"]) {
      assert.equal((await fetch(`${url}/page/${name}`)).status, 404, name);
    }
  });

  it("page: false closes it, and a router of one's own has none", async () => {
    const { url } = await start({ page: false });
    assert.equal((await fetch(url)).status, 404);
    assert.equal((await fetch(`${url}/api/page/about`)).status, 404);
    const hooks = createHookService({ agent, logger, config: {} });
    const server = createServer({ hooks, port: 0 });
    assert.equal((await fetch((await server.listen()).url)).status, 404);
    await server.close(0);
  });

  it("page that is not built: says what to run; only files of known types are served", async () => {
    for (const isBuilt of [false, true]) {
      if (isBuilt) {
        mkdirSync(join(folder(), "page"));
        writeFileSync(join(folder(), "index.html"), "<!doctype html>");
        writeFileSync(join(folder(), "page/a.exe"), "");
        writeFileSync(join(folder(), "page/a.js"), "1");
      }
      const hooks = createServiceWithRoutes({ agent, logger, config: {} }, () => pageRoutes(folder()));
      const server = createServer({ hooks, port: 0 });
      const { url } = await server.listen();
      const response = await fetch(url);
      assert.equal(response.status, isBuilt ? 200 : 404);
      if (!isBuilt) assert.match(await response.text(), /npm run build/);
      assert.equal((await fetch(`${url}/page/a.js`)).status, isBuilt ? 200 : 404);
      assert.equal((await fetch(`${url}/page/a.exe`)).status, 404);
      await server.close(0);
    }
  });
});
