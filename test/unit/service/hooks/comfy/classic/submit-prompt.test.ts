import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { decodePng } from "latentkit";
import {
  classicStarter,
  copyOf,
  ended,
  failing,
  picture,
  quick,
  submit,
  viewOf,
} from "../../../../../helpers/hooks/classic-service.js";
import { until } from "../../../../../helpers/hooks/hook-service.js";

const UUID = "0f0f0f0f-1234-4abc-8def-000000000001";

describe("start of a prompt of the classic API", () => {
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

  it("the editor's format is converted, and goes into the pictures", async () => {
    const service = await start();
    const workflow = {
      last_node_id: 2,
      last_link_id: 1,
      version: 0.4,
      groups: [],
      config: {},
      extra: {},
      nodes: [
        {
          id: 1,
          type: "EmptyImage",
          mode: 0,
          inputs: [],
          widgets_values: [8, 8, 1, 255],
          outputs: [{ name: "IMAGE", type: "IMAGE", links: [1] }],
        },
        {
          id: 9,
          type: "SaveImage",
          mode: 0,
          outputs: [],
          widgets_values: ["editor"],
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

  it("started again: a prompt keeps its texts and wanted nodes, and its message is empty", async () => {
    const service = await start();
    const other = { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "other" } };
    const workflow = { seed: 0, deep: "\ud83e\udd8a \u0000" };
    const text = JSON.stringify({
      prompt: { ...quick(), 7: other },
      client_id: "me",
      partial_execution_targets: ["9"],
      extra_data: { extra_pnginfo: { workflow } },
    });
    const body = text.replace('"seed":0', '"seed":18446744073709551615');
    const { prompt_id: id } = (await (await service.post("/prompt", body)).json()) as { prompt_id: string };
    const entry = await ended(service, id);
    assert.match(await (await service.get(`/history/${id}`)).text(), /"seed": 18446744073709551615/);
    assert.deepEqual(entry.prompt[4], ["9"]);
    const again = await service.post(`/api/runs/${id}/again`, {});
    const { run_id } = (await again.json()) as { run_id: string };
    const { runs } = service.hooks;
    await until(async () => (await runs.status(run_id)).finishedAt !== null, "the end");
    for (const run of [id, run_id]) {
      assert.equal((await runs.get(run)).message, "");
      const { state, files } = await runs.status(run);
      assert.deepEqual([state, files.length], ["succeeded", 1]);
      const { text } = await decodePng(await readFile(files[0]!.path));
      assert.equal(text.workflow, '{"seed": 18446744073709551615, "deep": "\\ud83e\\udd8a \\u0000"}');
    }
    const changed = await service.post(`/api/runs/${id}/again`, { message: "a fox" });
    assert.equal(changed.status, 400);
  });
});
