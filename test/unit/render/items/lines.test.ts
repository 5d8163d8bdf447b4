import assert from "node:assert/strict";
import { join } from "node:path";
import { NumberLiteral } from "#src/io/json/lossless.js";
import { createGraphKeys } from "#src/render/items/graph-keys.js";
import { openItems } from "#src/render/items/open.js";
import { itemFiles, readAll, seededKeys, sentence } from "../../../helpers/items/items.js";

const sampler = { "5": { class_type: "KSampler", inputs: { positive: ["2", 0] } } };

describe("items from a file of prompts", () => {
  const files = itemFiles();

  it("reads one prompt a line, as it is written, and leaves blank lines out", async () => {
    const graph = { "2": { class_type: "CLIPTextEncode", inputs: { text: "" } }, ...sampler };
    const path = files.write("items.TXT", '\ufeffa fox, "in" {snow}\r\n\n  07 \n--steps 5 --prompt x\n');
    const items = await readAll(await openItems(path, createGraphKeys(graph)));
    assert.deepEqual(
      items.map(({ values, fault }) => (fault === undefined ? { ...values } : sentence(fault, files.folder()))),
      [
        { "2.text": 'a fox, "in" {snow}' },
        { "2.text": "07" },
        'items.TXT, line 4: expected a prompt, received "--steps 5 --prompt x".',
      ],
    );
  });

  it("faults every item of a graph without a prompt", async () => {
    const file = await openItems(files.write("items.txt", "a fox"), createGraphKeys(sampler));
    const [item] = await readAll(file);
    assert.match(String(item?.fault?.message), /items\.txt, line 1: .*"prompt"/);
  });
});

describe("items from JSONL", () => {
  const files = itemFiles();

  it("reads one object a line, with every digit, and leaves blank lines out", async () => {
    const text = '\ufeff{"5.seed": 18446744073709551615, "scene": "a\\nlake"}\r\n\n  \n{"5.steps": 7.0}\n{}';
    const read = await files.read("items.jsonl", text);
    assert.deepEqual(
      read.map(({ values, origin }) => [{ ...values }, origin]),
      [
        [
          { "5.seed": 18446744073709551615n, scene: "a\nlake" },
          { file: join(files.folder(), "items.jsonl"), line: 1 },
        ],
        [{ "5.steps": new NumberLiteral("7.0") }, { file: join(files.folder(), "items.jsonl"), line: 4 }],
        [{}, { file: join(files.folder(), "items.jsonl"), line: 5 }],
      ],
    );
  });

  it("reads UTF-16, with a mark or without", async () => {
    const text = '{"5.seed": 1, "scene": "狐"}\n{"5.seed": 2}\n';
    for (const bytes of [Buffer.from(`\ufeff${text}`, "utf16le"), Buffer.from(text, "utf16le")]) {
      for (const content of [bytes, Buffer.from(bytes).swap16()])
        assert.deepEqual(await files.valuesOrFaults("items.jsonl", content), [
          { "5.seed": 1, scene: "狐" },
          { "5.seed": 2 },
        ]);
    }
  });

  it("says that each line has a whole object, for lists, objects over lines and commas between", async () => {
    const hint = "Each line has one whole object.";
    assert.deepEqual(await files.valuesOrFaults("items.jsonl", '[{"5.seed": 1},\n{\n{"5.seed": 2},\n{"5.seed": 3}'), [
      `items.jsonl, line 1, column 16: expected a value, received the end of the text. ${hint}`,
      `items.jsonl, line 2, column 2: expected a key in double quotes, received the end of the text. ${hint}`,
      `items.jsonl, line 3, column 14: expected the end of the text, received ",". ${hint}`,
      { "5.seed": 3 },
    ]);
  });

  it("faults only the item of a wrong line, with line and column", async () => {
    const lines = [
      '{"5.seed": 1}',
      '{"5.seed": 1,}',
      '["5.seed", 1]',
      '{"5.sead": 1}',
      '{"5.seed": 1, "5.seed": 2}',
      '{"__proto__": 1}',
      `{"scene": "${"x".repeat(1 << 20)}"}`,
      '{"5.seed": 2}',
    ];
    assert.deepEqual(await files.valuesOrFaults("items.ndjson", lines.join("\n")), [
      { "5.seed": 1 },
      'items.ndjson, line 2, column 14: expected a key in double quotes, received "}".',
      'items.ndjson, line 3: expected an object of values such as {"6.text": "a fox"}, received a list of 2.',
      'items.ndjson, line 4: node 5 (ext latentNoisy) has no input "sead". Did you mean 5.seed?',
      'items.ndjson, line 5, column 15: duplicate key "5.seed".',
      'items.ndjson, line 6, column 2: the key "__proto__" is not allowed.',
      "items.ndjson, line 7: expected a line of at most 1 MiB.",
      { "5.seed": 2 },
    ]);
  });

  it("keeps keys of the name template as fields, and ignores others if that is allowed", async () => {
    const text = '{"scene": "x", "price": 7.0, "note": [1]}\n{"5.seed": 1}\n{"5.sead": 1}';
    const items = await files.read("items.jsonl", text, { named: new Set(["price"]), extraColumns: true });
    assert.deepEqual(
      items.map(({ values, fields, fault }) => fault?.code ?? [values, fields]),
      [[{ scene: "x" }, { price: new NumberLiteral("7.0") }], [{ "5.seed": 1 }, undefined], "items.invalid"],
    );
  });

  it("faults a seed that is written as a float, by line and key", async () => {
    const lines = ['{"seed": 1.84467E+19}', '{"5.seed": "1.84467E+19"}', '{"5.steps": 1e3}'];
    const why = "a number with an exponent does not show them.";
    assert.deepEqual(await files.valuesOrFaults("items.jsonl", lines.join("\n")), [
      `items.jsonl, line 1 (seed): expected a seed with all its digits, received 1.84467E+19: ${why}`,
      `items.jsonl, line 2 (5.seed): expected a seed with all its digits, received "1.84467E+19": ${why}`,
      { "5.steps": new NumberLiteral("1e3") },
    ]);
  });

  it("faults bytes that are not UTF-8, and refuses a missing file", async () => {
    const bytes = Buffer.concat([Buffer.from('{"scene": "'), Buffer.from([0xff]), Buffer.from('"}\n{}')]);
    assert.deepEqual(await files.valuesOrFaults("items.jsonl", bytes), [
      "items.jsonl, line 1: expected text in UTF-8, received other bytes.",
      {},
    ]);
    await assert.rejects(openItems(join(files.folder(), "none.jsonl"), seededKeys()), { code: "file.not-found" });
    for (const nothing of ["", "\n \n"]) {
      await assert.rejects(files.valuesOrFaults("items.jsonl", nothing), {
        message: /items\.jsonl: expected at least one item/,
      });
    }
  });

  it("passes over a line without end in bounded memory", async () => {
    const read = await files.valuesOrFaults(
      "items.jsonl",
      Buffer.concat([Buffer.alloc(1 << 26, "x"), Buffer.from("\n{}\n")]),
    );
    assert.deepEqual(read, ["items.jsonl, line 1: expected a line of at most 1 MiB.", {}]);
  });
});
