import assert from "node:assert/strict";
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
});
