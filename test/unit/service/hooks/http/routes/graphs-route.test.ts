import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { createGraphAgent } from "latentkit/hooks";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import { serviceStarter, until } from "../../../../../helpers/hooks/hook-service.js";

/** Writes its text and the message to a file of the graph's name. */
const graph = (name: string, text = "{{message}}") => ({
  1: { class_type: "PrimitiveInt", inputs: { value: 7 }, _meta: { title: "Steps" } },
  2: {
    class_type: "ext saveTextLazy",
    inputs: { text, output_file_path: ".", file_name: name, file_extension: "txt", overwrite: true },
  },
});

describe("graphs by their names", () => {
  const folder = temporaryFolder();
  const open = serviceStarter();
  const agents: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.close();
  });
  const agentOf = (graphs: Record<string, object>) => {
    const agent = createGraphAgent({ graphs, outputDir: join(folder(), "out"), threads: 1 });
    agents.push(agent);
    return agent;
  };
  type Run = { status: string; done: boolean; files: { name: string }[] };
  const ended = async (service: Awaited<ReturnType<typeof open>>, { status_url }: { status_url: string }) => {
    let run: Run | undefined;
    await until(async () => {
      run = (await (await service.get(status_url)).json()) as Run;
      return run.done;
    });
    return run!;
  };

  it("a request names its graph; without a name it gets the first", async () => {
    const service = await open({ agent: agentOf({ portrait: graph("portrait"), lake: graph("lake") }) });
    const named = await ended(service, await service.start("hello", { graph: "lake" }));
    assert.deepEqual([named.status, named.files.map(({ name }) => name)], ["succeeded", ["lake.txt"]]);
    const first = await ended(service, await service.start("hello"));
    assert.deepEqual(
      first.files.map(({ name }) => name),
      ["portrait.txt"],
    );
  });

  it("an unknown name is refused with those that exist, and nothing runs", async () => {
    const service = await open({ agent: agentOf({ portrait: graph("portrait"), lake: graph("lake") }) });
    const response = await service.post("/hooks/agent", { message: "x", graph: "portait" });
    assert.equal(response.status, 400);
    const { error } = (await response.json()) as { error: string };
    assert.equal(error, 'graph: expected one of portrait, lake, received "portait". Did you mean portrait?');
    const { runs } = (await (await service.get("/api/runs")).json()) as { runs: unknown[] };
    assert.equal(runs.length, 0);
    for (const name of ["__proto__", "constructor", "x".repeat(201), 1]) {
      assert.equal((await service.post("/hooks/agent", { message: "x", graph: name })).status, 400);
    }
    const custom = await open();
    const none = await custom.post("/hooks/agent", { message: "x", graph: "lake" });
    assert.match(((await none.json()) as { error: string }).error, /^graph: expected none: the agent has no graphs/);
  });

  it("GET /api/graphs lists them with their schemas, to callers with the token", async () => {
    const service = await open({ agent: agentOf({ portrait: graph("portrait"), lake: graph("lake", "same") }) });
    assert.equal((await fetch(`${service.url}/api/graphs`)).status, 401);
    const { graphs } = (await (await service.get("/api/graphs")).json()) as {
      graphs: { name: string; default: boolean; schema: { required: string[]; properties: object } }[];
    };
    assert.deepEqual(
      graphs.map(({ name, default: isDefault, schema }) => [name, isDefault, schema.required]),
      [
        ["portrait", true, ["message"]],
        ["lake", false, []],
      ],
    );
    assert.deepEqual(Object.keys(graphs[0]!.schema.properties), ["message", "Steps"]);
  });

  it("the same key with another graph is another payload", async () => {
    const service = await open({ agent: agentOf({ a: graph("a"), b: graph("b") }) });
    const key = { "idempotency-key": "k" };
    assert.equal((await service.post("/hooks/agent", { message: "x", graph: "a" }, key)).status, 200);
    assert.equal((await service.post("/hooks/agent", { message: "x", graph: "b" }, key)).status, 422);
  });

  it("a run keeps its graph over a reload, also when it is started again", async () => {
    const agent = agentOf({ a: graph("old") });
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = Object.assign(
      async (...args: Parameters<typeof agent>) => {
        await held;
        return agent(...args);
      },
      { check: agent.check, graphs: agent.graphs },
    );
    const service = await open({ agent: slow });
    const accepted = await service.start("x", { graph: "a" });
    agent.reload({ graphs: { a: graph("new"), b: graph("b") } });
    const later = await service.start("y", { graph: "a" });
    release();
    assert.deepEqual(
      (await ended(service, accepted)).files.map(({ name }) => name),
      ["old.txt"],
    );
    assert.deepEqual(
      (await ended(service, later)).files.map(({ name }) => name),
      ["new.txt"],
    );
    const again = await service.post(`/api/runs/${accepted.run_id}/again`, {});
    const repeated = await ended(service, (await again.json()) as { status_url: string });
    assert.deepEqual(
      repeated.files.map(({ name }) => name),
      ["old.txt"],
    );
    const other = await service.post(`/api/runs/${accepted.run_id}/again`, { graph: "b" });
    const changed = await ended(service, (await other.json()) as { status_url: string });
    assert.deepEqual(
      changed.files.map(({ name }) => name),
      ["b.txt"],
    );
  });

  describe("a message that its graph has no use for", () => {
    const set = graph("set", "{{style}}");
    // neither a placeholder nor a titled primitive
    const fixed = { 2: graph("fixed", "same")[2] };
    const signed = (body: string, keys: object) => {
      const mac = createHmac("sha256", SECRET).update(body).digest("hex");
      return { "x-hub-signature-256": `sha256=${mac}`, ...keys };
    };
    const SECRET = "0123456789abcdef";
    const start = (placeholders = { message: "{{/text}}" }) => {
      const incoming = { it: { signature: "github", secrets: SECRET, placeholders } } as const;
      return open({ agent: agentOf({ prompt: graph("prompt"), set, fixed }), config: { incoming } });
    };
    const refusal = async (response: Response) => [
      response.status,
      ((await response.json()) as { error: string }).error,
    ];

    it("is refused at every door before there is a run", async () => {
      const service = await start({ text: "{{/text}}" } as never);
      const body = JSON.stringify({ text: "x" });
      const unknown = 'the graph has no key "stile"; it takes "message", "Steps".';
      const text = 'the graph needs a value for {{style}}, received plain text; it takes "style", "Steps".';
      const none = 'the graph takes no message; send "{}" to render it as it is.';
      const stile = '{"message": "x", "stile": "y"}';
      for (const [path, request, sentence, headers] of [
        ["/hooks/agent", { message: stile }, `Message: ${unknown}`],
        ["/api/hooks/agent", { message: "x", graph: "set" }, `Message: ${text}`],
        ["/hooks/agent", { message: "x", graph: "fixed" }, `Message: ${none}`],
        ["/hooks/agent", { message: '{"message": "x"}', graph: "fixed" }, `Message: ${none}`],
        ["/hooks/wake", { text: stile }, `Message: ${unknown}`],
        ["/hooks/group", { items: [{ message: "x" }, { message: stile }] }, `items.1: Message: ${unknown}`],
        ["/hooks/group", { items: [{ message: "x" }], defaults: { graph: "fixed" } }, `items.0: Message: ${none}`],
        [
          "/hooks/in/it",
          body,
          'Message: the graph needs a value for {{message}}, received a JSON object with "text"; it takes "message", "Steps".',
          signed(body, {}),
        ],
      ] as [string, object | string, string, Record<string, string>?][]) {
        // a refused request keeps no key: the next one is refused too
        for (let i = 0; i < 2; i++) {
          const response = await service.post(path, request, { "idempotency-key": "k", ...headers });
          assert.deepEqual(await refusal(response), [400, sentence], path);
        }
      }
      assert.equal((await service.hooks.runs.list({ limit: 10 })).runs.length, 0);
      const { status, files } = await ended(service, await service.start("{}", { graph: "fixed" }));
      assert.deepEqual([status, files.map(({ name }) => name)], ["succeeded", ["fixed.txt"]]);
    });

    it("is refused when a run is started again, also one of a graph that takes another", async () => {
      const service = await start();
      const { run_id } = await service.start("x");
      const again = (body: object) => service.post(`/api/runs/${run_id}/again`, body);
      assert.match(String((await refusal(await again({ message: '{"stile": "y"}' })))[1]), /\{\{message\}\}/);
      assert.match(String((await refusal(await again({ graph: "fixed" })))[1]), /takes no message/);
      assert.equal((await again({})).status, 200);
    });

    it("an earlier run of a job takes neither a message nor another graph without one", async () => {
      const agent = agentOf({ prompt: graph("prompt") });
      const service = await open({ agent, config: { comfy_api: true } });
      const job = await service.post("/api/v2/jobs", { workflow: fixed });
      const { id } = (await job.json()) as { id: string };
      const again = (body: object) => service.post(`/api/runs/${id}/again`, body);
      for (const [body, sentence] of [
        [{ message: "x" }, "Message: a graph that came with its request takes none."],
        [{ graph: "prompt" }, "message: is required with another graph: the earlier run has none"],
      ] as const) {
        assert.deepEqual(await refusal(await again(body)), [400, sentence]);
      }
      for (const body of [{}, { message: "x", graph: "prompt" }]) assert.equal((await again(body)).status, 200);
    });

    it("fails a run that no request started, such as one of a heartbeat", async () => {
      const service = await open({ agent: agentOf({ fixed }) });
      assert.equal((await service.post("/hooks/wake", { text: "up", mode: "next-heartbeat" })).status, 200);
      const { runs } = await service.hooks.heartbeat();
      const { status } = await ended(service, { status_url: `/api/runs/${runs[0]!.runId}` });
      assert.equal(status, "failed");
    });

    it("is told at the start, of graphs and of senders", async () => {
      const service = await start({ text: "{{/text}}" } as never);
      const warnings = service
        .log()
        .split("\n")
        .filter((line) => line.includes('"level":40'));
      assert.deepEqual(
        warnings.map((line) => (JSON.parse(line) as { msg: string }).msg),
        [
          'the graph "fixed" takes no message: requests with one are refused, "{}" renders it as it is',
          'incoming.it: the default graph has no key "text": its deliveries are refused',
        ],
      );
      assert.doesNotMatch((await open()).log(), /takes no message/);
    });
  });
});
