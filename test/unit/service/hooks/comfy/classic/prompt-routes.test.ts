import assert from "node:assert/strict";
import { decodePng } from "latentkit";
import {
  classicStarter,
  copyOf,
  ended,
  endless,
  failing,
  picture,
  quick,
  submit,
  viewOf,
} from "../../../../../helpers/hooks/classic-service.js";
import { bearer, until } from "../../../../../helpers/hooks/hook-service.js";

const UUID = "0f0f0f0f-1234-4abc-8def-000000000001";

describe("prompts of the classic API", () => {
  const start = classicStarter();

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

  it("NaN of Python: nothing outside of inputs, refused by node and input inside", async () => {
    const service = await start();
    const body = JSON.stringify({ prompt: quick() });
    const aside = body.replace('"class_type"', '"is_changed":[NaN],"class_type"');
    const inside = body.replace('"inputs":{', '"inputs":{"odd":-Infinity,');
    assert.ok(aside !== body && inside !== body);
    assert.equal((await service.post("/prompt", aside, { "content-type": "application/json" })).status, 200);
    const response = await service.post("/prompt", inside, { "content-type": "application/json" });
    const { error } = (await response.json()) as { error: { type: string; message: string } };
    assert.deepEqual([response.status, error.type], [400, "invalid_prompt"]);
    assert.match(JSON.stringify(error), /Node \w+, input \\"odd\\": expected a finite number, received -Infinity/);
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
    const { run_id } = await service.start("{}");
    assert.deepEqual(await (await service.get(`/history/${run_id}`)).json(), {});
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
});
