import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type RenderOptions, render } from "latentkit";
import { parseJson, printJson } from "#src/io/json/lossless.js";
import { redactMetadata } from "#src/render/redact.js";
import { createThreadPool } from "#src/render/threads/thread-pool.js";
import { refuses } from "../../helpers/errors.js";
import { filesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { noisyLake, receiptOf, saved, textsOf } from "../../helpers/graph/receipt-graphs.js";

const inputDir = join(root, "test/graphs/input");
const HIDDEN = "[redacted]";
const redact = (prompt: object, keys: readonly string[], extraPnginfo?: unknown) =>
  redactMetadata({ prompt: prompt as Record<string, unknown>, extraPnginfo }, keys, () => ({
    inputs: {},
    displayName: "",
  }));

describe("redactMetadata", () => {
  it("hides one input of one node, or a key at any depth, and changes nothing it is given", () => {
    const prompt = { "6": { inputs: { text: "a", seed: 1 } }, "7": { inputs: { text: "b" }, _meta: { text: "c" } } };
    const before = structuredClone(prompt);
    assert.deepEqual(redact(prompt, ["6.text"]).prompt, {
      ...prompt,
      "6": { inputs: { text: HIDDEN, seed: 1 } },
    });
    assert.deepEqual(redact(prompt, ["text"]).prompt, {
      "6": { inputs: { text: HIDDEN, seed: 1 } },
      "7": { inputs: { text: HIDDEN }, _meta: { text: HIDDEN } },
    });
    assert.deepEqual(redact(prompt, ["7"]).prompt, { "6": prompt["6"], "7": HIDDEN });
    assert.deepEqual(prompt, before);
  });

  it("keeps every other digit and the order of keys", () => {
    const text =
      '{"10": {"inputs": {"z": 7.0, "text": {"deep": [1]}, "a": 18446744073709551615}}, "2": {"inputs": {}}}';
    const shown = redact(parseJson(text) as object, ["10.text"]).prompt;
    assert.equal(printJson(shown), text.replace('{"deep": [1]}', `"${HIDDEN}"`));
  });

  it("takes keys with dots in node ids and input names", () => {
    const prompt = { "a.b": { inputs: { "c.d": "x", c: "y" } } };
    assert.deepEqual(redact(prompt, ["a.b.c.d"]).prompt, { "a.b": { inputs: { "c.d": HIDDEN, c: "y" } } });
  });

  it("hides extra_pnginfo too: keys at any depth, and all widgets of a node of which one input is hidden", () => {
    const prompt = { "6": { inputs: { text: "secret" } }, "7": { inputs: { seed: 1 } } };
    const workflow = {
      nodes: [
        { id: 6, widgets_values: ["secret", 3] },
        { id: 7, widgets_values: [1] },
      ],
      definitions: { subgraphs: [{ nodes: [{ id: "6", widgets_values: { text: "secret" } }] }] },
    };
    for (const key of ["6.text", "text"]) {
      const shown = redact(prompt, [key], { workflow, note: "x" }).extraPnginfo;
      assert.deepEqual(shown, {
        workflow: {
          nodes: [
            { id: 6, widgets_values: [HIDDEN, HIDDEN] },
            { id: 7, widgets_values: [1] },
          ],
          definitions: { subgraphs: [{ nodes: [{ id: "6", widgets_values: { text: HIDDEN } }] }] },
        },
        note: "x",
      });
    }
    assert.deepEqual(redact(prompt, ["workflow"], { workflow, note: "x" }).extraPnginfo, {
      workflow: HIDDEN,
      note: "x",
    });
  });

  it("refuses a node's input that is nowhere: a misspelt key would show what it was to hide", async () => {
    const prompt = { "6": { class_type: "t", inputs: { text: "a" } } };
    await refuses(
      () => redact(prompt, ["6.txt"]),
      "usage.invalid",
      /^Cannot redact a value: node 6 .*Did you mean 6\.text\?/,
    );
    await refuses(() => redact(prompt, ["9.text"]), "usage.invalid", /no node "9"/);
    for (const keys of ["text", [""], [1]]) {
      await refuses(() => redact(prompt, keys as string[]), "usage.invalid", /redact: expected a list of keys/);
    }
    // a policy for any graph may name keys that this one does not have
    assert.deepEqual(redact(prompt, ["api_key"]).prompt, prompt);
    assert.deepEqual(redact(prompt, ["a.b"], { "a.b": 1 }).extraPnginfo, { "a.b": HIDDEN });
  });
});

describe("render with redact", () => {
  const folder = temporaryFolder();
  const run = async (graph: object, options: RenderOptions = {}) => {
    const result = await render(graph, { outputDir: folder(), inputDir, ...options });
    assert.equal(result.status, "success", result.error?.message);
    return result.files[0]!.path;
  };

  it("changes the metadata only: same pixels, same name, and the receipt says what is hidden", async () => {
    const open = await run(noisyLake());
    const hidden = await run(noisyLake(), { redact: ["3.seed", "positive", "6.filename_prefix", "positive"] });
    assert.match(hidden, /noisy_00002_\.png$/);
    const { prompt } = textsOf(hidden);
    for (const secret of ["18446744073709551615", "a lake", "noisy"]) {
      assert.ok(!readFileSync(hidden, "latin1").includes(secret), secret);
    }
    assert.equal(prompt!.split(HIDDEN).length, 4);
    const [before, after] = [receiptOf(open), receiptOf(hidden)];
    assert.notEqual(after.graph, before.graph);
    assert.deepEqual(after, {
      ...before,
      index: 0,
      graph: after.graph,
      seeds: { "4.seed": "7" },
      redacted: ["3.seed", "positive", "6.filename_prefix"],
    });
  });

  it("leaves out of the receipt what the metadata hides, in whatever way", async () => {
    for (const redact of [["seed"], ["3.seed", "4.seed"], ["inputs"], ["3", "4"]]) {
      assert.deepEqual(receiptOf(await run(noisyLake(), { redact })).seeds, {}, String(redact));
    }
    const wrapped = noisyLake({ __value__: 5 });
    assert.deepEqual(receiptOf(await run(wrapped)).seeds["3.seed"], "5");
    assert.deepEqual(receiptOf(await run(wrapped, { redact: ["__value__"] })).seeds, { "4.seed": "7" });
    assert.deepEqual(receiptOf(await run(noisyLake(), { redact: ["source"] })).noise, { "4": "cpu" });
    const file = await run(noisyLake(), { redact: ["image"] });
    assert.deepEqual(receiptOf(file).inputs, {});
    assert.ok(!readFileSync(file, "latin1").includes("lake.png"));
  });

  it("goes with the run into a thread, and hides extra_pnginfo", async () => {
    const pool = createThreadPool({ threads: 1 });
    const extraPnginfo = { workflow: { nodes: [{ id: 1, widgets_values: ["lake.png"] }] }, note: "for me" };
    try {
      const options = { outputDir: folder(), inputDir, extraPnginfo, redact: ["1.image", "note"] };
      const { files } = await pool.render(saved(), options);
      const { latentkit, ...texts } = textsOf(files[0]!.path);
      assert.deepEqual(JSON.parse(texts.workflow!), { nodes: [{ id: 1, widgets_values: [HIDDEN] }] });
      assert.equal(texts.note, `"${HIDDEN}"`);
      assert.deepEqual((JSON.parse(latentkit!) as { redacted: string[] }).redacted, ["1.image", "note"]);
    } finally {
      await pool.close();
    }
  });

  it("refuses a wrong key before anything is written", async () => {
    const options = { outputDir: folder(), inputDir, redact: ["2.filename_perfix"] };
    await refuses(render(saved(), options), "usage.invalid", /Did you mean 2\.filename_prefix\?/);
    assert.deepEqual(filesIn(folder()), []);
  });
});
