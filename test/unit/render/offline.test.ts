import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type BatchEvent,
  batch,
  createRegistry,
  defineNode,
  executeGraph,
  image,
  registry,
  render,
  validateGraph,
} from "latentkit";
import { createGraphAgent } from "latentkit/hooks";
import { startService } from "latentkit/service";
import { loadConfig } from "#src/render/config/load-config.js";
import { refuses } from "../../helpers/errors.js";
import { root, temporaryFolder } from "../../helpers/folders.js";
import { node } from "../../helpers/graph/graph-nodes.js";
import { latentkit } from "../../helpers/process/cli.js";

const inputDir = join(root, "test/graphs/input");
const asked = { positive: "a fox", negative: "", model: "sd3", aspect_ratio: "1:1", seed: 0, denoise: 1 };
const remote = {
  "1": node("ext remoteImageApi", asked),
  "2": node("SaveImage", { images: ["1", 0], filename_prefix: "remote" }),
};
const REFUSED = /^Node 1 \(ext remoteImageApi\): the node reaches the network or uses a key, which is not allowed here/;

/** Hands its pictures on, and does something before. */
const through = (
  key: string,
  flags: object,
  run: (context: { fetch: typeof fetch; config: object }) => unknown = () => {},
) =>
  defineNode({
    key,
    inputs: { images: image() },
    outputs: { images: "IMAGE" },
    ...flags,
    run: async ({ images }, context) => {
      await run(context);
      return { images };
    },
  });

describe("a run that may not reach the network", () => {
  const folder = temporaryFolder();
  const out = () => join(folder(), "out");
  const options = (more = {}) => ({ inputDir, outputDir: out(), allowNetwork: false, ...more });
  const via = (key: string) => ({
    "0": node("LoadImage", { image: "lake.png" }),
    "1": node(key, { images: ["0", 0] }),
    "2": node("SaveImage", { images: ["1", 0], filename_prefix: "x" }),
  });
  async function run(items: Iterable<object> | AsyncIterable<object>, more = {}, graph: object = remote) {
    const events: BatchEvent[] = [];
    for await (const event of batch(graph, items, options({ concurrency: 1, ...more }))) events.push(event);
    return events;
  }

  it("refuses a graph with such a node before anything is written, by render, batch and agent", async () => {
    const error = await refuses(render(remote, options()), "network.forbidden", REFUSED);
    assert.deepEqual([error.details.nodeId, error.meaning.exit], ["1", 2]);
    await refuses(run([{ "1.seed": 1 }, { "1.seed": 2 }]), "network.forbidden", REFUSED);
    const agent = createGraphAgent({ graph: remote, threads: 1, ...options() });
    const context = { signal: new AbortController().signal, emit() {}, addFile: () => ({ url: "" }) };
    const message = { id: "r", sessionKey: "s", message: "{}", name: "" };
    try {
      await refuses(Promise.resolve(agent(message as never, context as never)), "network.forbidden", REFUSED);
    } finally {
      await agent.close();
    }
    assert.ok(!existsSync(out()));
  });

  it("fails each item if an item might do without the node", async () => {
    async function* items() {
      yield { "1.seed": 1 };
    }
    const failed = (await run(items())).find(({ type }) => type === "item-failed");
    assert.match((failed as Extract<BatchEvent, { type: "item-failed" }>).error.message, REFUSED);
  });

  it("runs graphs whose such nodes are not needed, or left out with partial", async () => {
    const graph = {
      ...remote,
      "3": node("LoadImage", { image: "lake.png" }),
      "4": node("SaveImage", { images: ["3", 0], filename_prefix: "good" }),
    };
    assert.equal((await render(graph, options({ targets: ["4"] }))).status, "success");
    const { status, leftOut, warnings } = await render(graph, options({ partial: true }));
    assert.deepEqual([status, leftOut], ["success", ["2"]]);
    assert.match(warnings[0]!, REFUSED);
  });

  it("knows nodes of others by what they declare: reachesNetwork or usesKey", async () => {
    for (const flags of [{ reachesNetwork: true }, { usesKey: true }]) {
      const own = { registry: createRegistry([through("own", flags)], registry) };
      await refuses(render(via("own"), options(own)), "network.forbidden", /^Node 1 \(own\): the node reaches/);
      assert.equal((await render(via("own"), { ...options(own), allowNetwork: true })).status, "success");
      assert.equal((await render(via("own"), { ...options(own), allowNetwork: undefined })).status, "success");
      const unchecked = executeGraph(via("own"), options({ ...own, validate: false }));
      await refuses(unchecked.next(), "network.forbidden");
      const verdict = validateGraph(via("own"), { ...own, inputDir, allowNetwork: false });
      assert.deepEqual([verdict.ok, Object.keys(verdict.nodeErrors)], [false, ["1"]]);
    }
  });

  it("gives nodes that declare nothing neither fetch nor keys", async () => {
    let config: object = {};
    const asks = through("asks", {}, (context) => {
      config = context.config;
    });
    const fetches = through("fetches", {}, ({ fetch }) => fetch("http://127.0.0.1:9/"));
    const own = {
      registry: createRegistry([asks, fetches], registry),
      config: { remote_image_api: { base_url: "https://x.test", keys: [{ name: "a", key: "secret" }] } },
    };
    assert.equal((await render(via("asks"), options(own))).status, "success");
    assert.deepEqual(config, { remote_image_api: { base_url: "https://x.test", keys: [] } });
    const { status, error } = await render(via("fetches"), options(own));
    assert.deepEqual([status, error!.code], ["failed", "network.forbidden"]);
  });

  it("refuses such a node in a graph that a node answers with", async () => {
    const grows = defineNode({
      key: "grows",
      inputs: {},
      outputs: { images: "IMAGE" },
      run: () => ({ result: [["a", 0]], expand: { a: node("ext remoteImageApi", asked) } }),
    });
    const graph = { "1": node("grows"), "2": node("SaveImage", { images: ["1", 0], filename_prefix: "x" }) };
    const own = { registry: createRegistry([grows], registry) };
    const { status, error } = await render(graph, options(own));
    assert.deepEqual([status, error!.code, error!.details.nodeId], ["failed", "network.forbidden", "1"]);
  });

  it("is asked for by --offline, allow_network and LATENTKIT_ALLOW_NETWORK; without them nodes may call out @long", async () => {
    assert.equal(loadConfig({ env: {} }).allow_network, true);
    assert.equal(loadConfig({ env: { LATENTKIT_ALLOW_NETWORK: "false" } }).allow_network, false);
    const graph = join(folder(), "graph.json");
    writeFileSync(graph, JSON.stringify(remote));
    const config = join(folder(), "latentkit.yaml");
    writeFileSync(config, "allow_network: false\n");
    const render = ["render", graph, "--out", out()];
    const ways: [string[], Record<string, string>][] = [
      [[...render, "--offline"], {}],
      [[...render, "--offline", "--seeds", "0..3"], { LATENTKIT_ALLOW_NETWORK: "true" }],
      [[...render, "--config", config], {}],
      [render, { LATENTKIT_ALLOW_NETWORK: "false" }],
    ];
    for (const [args, env] of ways) {
      const { code, stdout, stderr } = await latentkit(args, { env });
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, /latentkit: Node 1 \(ext remoteImageApi\): the node reaches the network or uses a key/);
    }
    assert.ok(!existsSync(out()));
    const allowed = await latentkit(["validate", graph]);
    assert.equal(allowed.code, 0, allowed.stdout);
    const refused = await latentkit(["validate", graph, "--offline"]);
    assert.deepEqual([refused.code, /cannot run\.\nNode 1 \(ext remoteImageApi\)/.test(refused.stdout)], [2, true]);
    // a graph without a key fails as it always did
    const keyless = await latentkit(render, { env: { STABILITY_API_KEY: "" } });
    assert.equal(keyless.code, 3);
  });

  it("is what the service gives its graphs if its configuration says so", async () => {
    const graph = join(folder(), "graph.json");
    writeFileSync(graph, JSON.stringify(remote));
    const env = { LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: "a-token-of-the-tests", LATENTKIT_STORE: "memory:" };
    const config = {
      ...loadConfig({ env, flags: { allow_network: false, port: 0 } }),
      agent: { graph },
      output_dir: out(),
    };
    const service = await startService(config, { log: () => {} });
    try {
      const headers = { Authorization: "Bearer a-token-of-the-tests", "Content-Type": "application/json" };
      const body = JSON.stringify({ message: "{}" });
      const started = await fetch(`${service.url}/hooks/agent`, { method: "POST", headers, body });
      const { stream_url } = (await started.json()) as { stream_url: string };
      const stream = await (await fetch(service.url + stream_url, { headers })).text();
      assert.match(stream, /event: error\ndata: .*Node 1 \(ext remoteImageApi\): the node reaches the network/);
    } finally {
      await service.close(0);
    }
  });

  it("takes only true or false for allowNetwork", async () => {
    await refuses(render(remote, options({ allowNetwork: "no" })), "usage.invalid", /^allowNetwork: expected true or/);
  });
});

describe("the list of files on stdout", () => {
  const folder = temporaryFolder();

  it("has a line for each, whatever folder or node wrote it @long", async () => {
    const out = join(folder(), "a\nb");
    const graph = join(folder(), "graph.json");
    writeFileSync(
      graph,
      JSON.stringify({
        "1": node("LoadImage", { image: "lake.png" }),
        "2": node("SaveImage", { images: ["1", 0], filename_prefix: "p" }),
      }),
    );
    const command = ["render", graph, "--input", inputDir, "--out", out, "--quiet"];
    for (const more of [[], ["--sweep", "2.filename_prefix=p,q"]]) {
      const { code, stdout } = await latentkit([...command, ...more]);
      assert.equal(code, 0);
      const lines = stdout.trimEnd().split("\n");
      assert.equal(lines.length, more.length === 0 ? 1 : 2);
      for (const line of lines) assert.match(line, /\/a\\u000ab\/[pq]_\d{5}_\.png$/);
    }
    const refused = await latentkit([...command, "--set", "2.filename_prefix=x\ny"]);
    assert.deepEqual([refused.code, refused.stdout], [2, ""]);
    assert.match(refused.stderr, /Node 2 \(SaveImage\), input "filename_prefix": expected a path without line breaks/);
  });
});
