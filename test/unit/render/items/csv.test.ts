import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { LatentkitError } from "#src/base/errors.js";
import { CsvParser } from "#src/render/items/csv.js";
import { createGraphKeys, createItemKeys } from "#src/render/items/graph-keys.js";
import type { BatchItem } from "#src/render/items/item.js";
import { openItems } from "#src/render/items/open.js";
import { itemFiles, readAll, seededKeys, sentence } from "../../../helpers/items/items.js";

const LAST = 18446744073709551615n;
const COUNTER = fileURLToPath(new URL("../../../helpers/items/count-items.js", import.meta.url));

describe("items from CSV", () => {
  const files = itemFiles();
  const refused = async (content: string | Uint8Array, expected: string) => {
    await assert.rejects(
      files.read("items.csv", content),
      (error) =>
        error instanceof LatentkitError &&
        error.code === "items.invalid" &&
        sentence(error, files.folder()) === expected,
      expected,
    );
  };

  it("takes keys from the first row, and texts from every other", async () => {
    const source = await files.open("items.csv", "5.seed,scene\n1,a lake\n2, a hill \n");
    assert.deepEqual(source.keys, ["5.seed", "scene"]);
    const file = join(files.folder(), "items.csv");
    const columns = { "5.seed": 1, scene: 2, "9.text": 2 };
    assert.deepEqual(await readAll(source), [
      { values: { "5.seed": "1", scene: "a lake" }, origin: { file, line: 2, columns } },
      { values: { "5.seed": "2", scene: " a hill " }, origin: { file, line: 3, columns } },
    ]);
  });

  it("refuses a seed that a spreadsheet has shortened, by its line and column", async () => {
    const why = "a number with an exponent does not show them; save the column as text.";
    assert.deepEqual(await files.valuesOrFaults("items.csv", '5.steps,seed\n1e1,1.84467E+19\n2,7\n3,"1,84467E+19"'), [
      `items.csv, line 2, column 2 (seed): expected a seed with all its digits, received "1.84467E+19": ${why}`,
      { "5.steps": "2", seed: "7" },
      `items.csv, line 4, column 2 (seed): expected a seed with all its digits, received "1,84467E+19": ${why}`,
    ]);
  });

  it("keeps every digit of a seed, and zeros before and behind", async () => {
    const read = await files.valuesOrFaults(
      "items.csv",
      "5.seed,5.steps\n18446744073709551615,020\n12345678901234567890,7.0",
    );
    assert.deepEqual(read, [
      { "5.seed": "18446744073709551615", "5.steps": "020" },
      { "5.seed": "12345678901234567890", "5.steps": "7.0" },
    ]);
  });

  it("reads quotes, commas and line breaks in fields, and counts lines through them", async () => {
    const text = 'scene,5.seed\n"a ""lake"", at\r\ndawn\nor dusk",1\n\n"",2\n"x\ry",3\nz,4';
    const read = await files.read("items.csv", text);
    assert.deepEqual(
      read.map(({ values, origin }) => [values.scene, values["5.seed"], origin!.line]),
      [
        ['a "lake", at\r\ndawn\nor dusk', "1", 2],
        ["", "2", 6],
        ["x\ry", "3", 7],
        ["z", "4", 9],
      ],
    );
  });

  it("reads a byte-order mark, line ends of every system and keys with blanks around", async () => {
    const expected = [
      { "5.seed": "1", scene: "é" },
      { "5.seed": "2", scene: "b" },
    ];
    for (const end of ["\n", "\r\n", "\r"]) {
      for (const mark of ["", "\ufeff"]) {
        for (const head of ["5.seed, scene", '"5.seed","scene"']) {
          const text = `${mark}${head}${end}1,é${end}${end}2,b${end}`;
          assert.deepEqual(await files.valuesOrFaults("items.csv", text), expected, JSON.stringify(text));
        }
      }
    }
    const mixed = await files.read("items.csv", "5.seed\r\n1\n\n\n2\r\n\r\n3\r4");
    assert.deepEqual(
      mixed.map(({ values, origin }) => [values["5.seed"], origin!.line]),
      [
        ["1", 2],
        ["2", 5],
        ["3", 7],
        ["4", 8],
      ],
    );
  });

  it("refuses an unknown, double or empty column, with a suggestion", async () => {
    const here = "items.csv, line 1, column";
    await refused(
      "scene,5.sead\nx,1\n",
      `${here} 2 (5.sead): node 5 (ext latentNoisy) has no input "sead". Did you mean 5.seed?`,
    );
    await refused(
      "scen\nx\n",
      `${here} 1 (scen): "scen" names no node's input (6.text) and no placeholder {{scen}} is in the graph. Did you mean scene?`,
    );
    await refused("51.seed\n1\n", `${here} 1 (51.seed): the graph has no node "51".`);
    await refused(
      "scene,price\nx,1\n",
      `${here} 2 (price): "price" names no node's input (6.text) and no placeholder {{price}} is in the graph. Use it in --name as {price}, or pass --extra-columns to ignore it.`,
    );
    await refused(
      "5.seed,scene, 5.seed\n1,x,2\n",
      `${here} 3 (5.seed): column 1 (5.seed) means the same; leave out one of them.`,
    );
    await refused("__proto__\n1", `${here} 1 (__proto__): "__proto__" is not allowed as a key.`);
    await refused("", "items.csv, line 1: expected a row of keys, received the end of the file.");
    const long = "x".repeat(100_000);
    await refused(`${long}\n`, `${here} 1: expected a key such as 6.text, received "${"x".repeat(77)}...".`);
  });

  it("reads semicolons and tabs between columns, as spreadsheets save them, and the row that names them", async () => {
    const expected = [
      { "5.seed": "1", scene: "a, b" },
      { "5.seed": "2", scene: "c; d" },
    ];
    for (const [separator, name] of [";", "\t", ","].flatMap((each) =>
      [`items.csv`, `items.tsv`].map((file) => [each, file] as const),
    )) {
      const rows = [
        ["5.seed", "scene"],
        ["1", '"a, b"'],
        ["2", '"c; d"'],
      ].map((row) => row.join(separator));
      for (const start of ["", `sep=${separator}\r\n`, `\ufeffsep=${separator}\n`, "\n\n"]) {
        const text = `${start}${rows.join("\r\n")}\r\n`;
        assert.deepEqual(await files.valuesOrFaults(name, text), expected, JSON.stringify(text));
      }
    }
    // a key that has them is one column
    assert.deepEqual(await files.valuesOrFaults("items.csv", "scene\na; b\n"), [{ scene: "a; b" }]);
    await refused(
      'scene;5.seed\n"a" b;3\n',
      'items.csv, line 2, column 1: in the row that begins here, a semicolon is missing after a closing quote, or a quote in a text is not doubled ("").',
    );
  });

  it("reads decimal commas between semicolons, but none that may part thousands", async () => {
    const keys = createItemKeys(createGraphKeys({ "1": { class_type: "KSampler", inputs: { cfg: 7, steps: 4 } } }));
    const cfgs = async (separator: string, ...fields: string[]) => {
      const parser = new CsvParser("-", keys);
      const items: BatchItem[] = [];
      const rows = [["1.cfg", "1.steps"], ...fields.map((field) => [field, "4"])];
      await parser.push(Buffer.from(rows.map((row) => row.join(separator)).join("\n")), items);
      await parser.push(undefined, items);
      return items.map(({ values }) => values["1.cfg"]);
    };
    assert.deepEqual(await cfgs(";", "7,5", "-0,125", "1,234", "1,2345", "7.5", "7"), [
      "7.5",
      "-0.125",
      "1,234",
      "1.2345",
      "7.5",
      "7",
    ]);
    assert.deepEqual(await cfgs(",", '"7,5"'), ["7,5"]);
  });

  it("finds the separator in a stream of single bytes", async () => {
    const parser = new CsvParser("-", createItemKeys(seededKeys()));
    const items: BatchItem[] = [];
    for (const byte of Buffer.from("\ufeff5.seed;scene\n1;a, b\n")) await parser.push(Buffer.from([byte]), items);
    await parser.push(undefined, items);
    assert.deepEqual(
      items.map(({ values, origin }) => [values, origin?.line]),
      [[{ "5.seed": "1", scene: "a, b" }, 2]],
    );
  });

  it("leaves out rows without text and columns without key, unless something is in them", async () => {
    const text = "scene,5.seed,,\nx,1,,\n,,,\n , ,,\ny,2, ,\nz,3,,4\n";
    assert.deepEqual(await files.valuesOrFaults("items.csv", text), [
      { scene: "x", "5.seed": "1" },
      { scene: "y", "5.seed": "2" },
      'items.csv, line 6, column 4: expected nothing below an empty key, received "4"; pass --extra-columns to ignore the column.',
    ]);
    const source = await files.open("items.csv", ",scene\n0,x\n1,y\n", { extraColumns: true });
    const items = await readAll(source);
    assert.deepEqual(
      items.map(({ values, origin }) => [values, origin!.columns]),
      ["x", "y"].map((scene) => [{ scene }, { scene: 2, "9.text": 2 }]),
    );
  });

  it("faults a spreadsheet's errors, which are not prompts", async () => {
    const why = "an error of a spreadsheet, which takes texts that begin with =, +, - or @ for formulas.";
    assert.deepEqual(await files.valuesOrFaults("items.csv", "scene,5.seed\n#NAME?,1\n#1 NAME?,2\nx,#REF!\n"), [
      `items.csv, line 2, column 1 (scene): expected a value, received #NAME?, ${why}`,
      { scene: "#1 NAME?", "5.seed": "2" },
      `items.csv, line 4, column 2 (5.seed): expected a value, received #REF!, ${why}`,
    ]);
  });

  it("keeps columns of the name template as fields, and ignores others if that is allowed", async () => {
    const text = "no.,scene,price,5.seed\n7,x,,1\n8,y,3,2\n";
    const extra = { named: new Set(["price"]), extraColumns: true };
    const source = await files.open("items.csv", text, extra);
    assert.deepEqual([source.keys, source.fields], [["scene", "5.seed"], ["price"]]);
    const items = await readAll(source);
    assert.deepEqual(
      items.map(({ values, fields }) => [values, fields]),
      [
        [{ scene: "x", "5.seed": "1" }, { price: "" }],
        [{ scene: "y", "5.seed": "2" }, { price: "3" }],
      ],
    );
    assert.notEqual(items[0]!.state, items[1]!.state);
    // what is nearly an input is a mistake, not an extra column
    for (const [head, why] of [
      ["5.sead", /has no input "sead"/],
      ["51.seed", /has no node "51"/],
    ] as const) {
      await assert.rejects(files.read("items.csv", `${head}\n1\n`, extra), { message: why });
    }
    await assert.rejects(files.read("items.csv", text, { named: new Set(["price"]) }), {
      message: /column 1 \(no\.\)/,
    });
  });

  it("faults only the item of a row with missing or surplus values", async () => {
    const text = "scene,5.steps,5.seed\nx,1,2\n\ny,,3\nz,4,\n,5,6\nx,7\nx,8,9,10,11\nlast,1,1\n";
    const here = "items.csv, line";
    assert.deepEqual(await files.valuesOrFaults("items.csv", text), [
      { scene: "x", "5.steps": "1", "5.seed": "2" },
      `${here} 4, column 2 (5.steps): expected a value, received an empty field.`,
      `${here} 5, column 3 (5.seed): expected a value, received an empty field.`,
      { scene: "", "5.steps": "5", "5.seed": "6" },
      `${here} 7, column 3 (5.seed): expected 3 fields in the row, received 2.`,
      `${here} 8, column 4: expected 3 fields in the row, received 5; a text that contains a comma needs double quotes.`,
      { scene: "last", "5.steps": "1", "5.seed": "1" },
    ]);
  });

  it("refuses an empty field for a placeholder of a number", async () => {
    assert.deepEqual(await files.valuesOrFaults("items.csv", "seed,steps,scene\n,20,x\n1,,y\n1,20,\n"), [
      "items.csv, line 2, column 1 (seed): expected a value, received an empty field.",
      "items.csv, line 3, column 2 (steps): expected a value, received an empty field.",
      { seed: "1", steps: "20", scene: "" },
    ]);
  });

  it("faults text that is not UTF-8", async () => {
    const latin = Buffer.from("5.seed,scene\n1,caf\xe9\n2,x\n", "latin1");
    assert.deepEqual(await files.valuesOrFaults("items.csv", latin), [
      "items.csv, line 2, column 2 (scene): expected text in UTF-8, received other bytes; save the file as CSV UTF-8.",
      { "5.seed": "2", scene: "x" },
    ]);
  });

  it("reads UTF-16, as spreadsheets and PowerShell save it, with a mark or without", async () => {
    const scenes = ["狐 🦊", "x".repeat(70_000), "é"];
    const text = `scene\t5.seed\r\n${scenes.map((scene, i) => `${scene}\t${i}`).join("\r\n")}\r\n`;
    for (const mark of ["", "\ufeff"]) {
      const bytes = Buffer.from(mark + text, "utf16le");
      for (const content of [bytes, Buffer.from(bytes).swap16()]) {
        assert.deepEqual(
          await files.valuesOrFaults("items.csv", content),
          scenes.map((scene, i) => ({ scene, "5.seed": String(i) })),
        );
        await refused(
          content.subarray(0, -1),
          "items.csv, line 1: expected text in UTF-8 or UTF-16, received other bytes.",
        );
      }
    }
  });

  it("stops at broken quoting, naming the line, after the rows before it", async () => {
    const source = await files.open("items.csv", 'scene,5.seed\nx,1\n"y\nz",2\n"a" b,3\nc,4\n');
    const items: BatchItem[] = [];
    await assert.rejects(readAll(source, items), (error) => {
      assert.equal(
        sentence(error, files.folder()),
        'items.csv, line 5, column 1: in the row that begins here, a comma is missing after a closing quote, or a quote in a text is not doubled ("").',
      );
      return true;
    });
    assert.deepEqual(
      items.map(({ values }) => values["5.seed"]),
      ["1", "2"],
    );
    await refused(
      'scene,5.seed\nx,1\na 3" lens,2\n',
      "items.csv, line 3, column 1: in the row that begins here, a quote stands inside a field that does not begin with one.",
    );
    await refused(
      'scene,5.seed\nx,1\ny,"2\nx,1\n',
      "items.csv, line 3, column 2: a quoted field starts in this row and is never closed.",
    );
    const endless = `scene,5.seed\nx,1\ny,"2\n${"z,3\n".repeat(300_000)}`;
    await refused(endless, "items.csv, line 3, column 2: the row has more than 1 MiB; is a quote not closed?");
  });

  it("refuses a missing file and one of another kind", async () => {
    await assert.rejects(openItems(join(files.folder(), "none.csv"), seededKeys()), { code: "file.not-found" });
    const folder = `${files.folder()}.csv`;
    await assert.rejects(openItems(join(folder, "x.md"), seededKeys()), {
      code: "usage.invalid",
      message: /expected a file named \.csv, \.tsv, \.jsonl or \.txt/,
    });
  });

  it("streams a million rows in memory that does not grow @long", async () => {
    const path = join(files.folder(), "million.csv");
    const out = createWriteStream(path);
    out.write("5.seed\n");
    for (let i = 0; i < 100; i++) {
      const rows = Array.from({ length: 10_000 }, (_, row) => LAST - BigInt(i * 10_000 + row));
      if (!out.write(`${rows.join("\n")}\n`)) await once(out, "drain");
    }
    out.end();
    await once(out, "finish");
    // its items as objects have some 300 MB
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--max-old-space-size=48", COUNTER, path]);
    assert.equal(stderr, "");
    const { count, bytes } = JSON.parse(stdout) as { count: number; bytes: number };
    assert.equal(count, 1_000_000);
    assert.ok(bytes < 250e6, `${bytes} bytes`);
  });
});
