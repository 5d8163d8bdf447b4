import assert from "node:assert/strict";
import { readArguments } from "#src/cli/table/arguments.js";
import {
  bytes,
  type Command,
  choice,
  flag,
  list,
  operand,
  operandOr,
  operands,
  optionalOperand,
  pairs,
  text,
  textOr,
  texts,
  type ValuesOf,
  wholeNumber,
} from "#src/cli/table/option.js";
import { refuses } from "../../../helpers/errors.js";

const table = {
  summary: "Do something.",
  operands: { FROM: operand("where it comes from"), TO: optionalOperand("where it goes", "nowhere") },
  options: {
    fast: flag("do it fast"),
    name: text("NAME", "a name"),
    out: textOr("./out", "DIR", "a folder"),
    tag: texts("TAG", "a tag"),
    ids: list("IDS", "ids"),
    set: pairs("KEY=VALUE", "a value"),
    graph: pairs("NAME=FILE", "a graph", { isOnce: true }),
    limit: wholeNumber("N", "so many", { min: 1 }),
    port: wholeNumber("PORT", "a port", { min: 0, max: 65535 }),
    kind: choice("KIND", "the kind", ["old", "new"]),
    memory: bytes("BYTES", "memory", 2 ** 40),
    sheet: text("FILE.png", "a sheet", { bare: /^(?!-).*\.png$/ }),
    alone: text("X", "alone", { excludes: { options: ["fast", "limit"], because: "it is alone" } }),
  },
} as const satisfies Command;

type Values = ValuesOf<typeof table.operands> & ValuesOf<typeof table.options>;

const read = (...argv: string[]) => readArguments<Values>("do", table, argv)!;

describe("arguments", () => {
  it("have the types of their table", () => {
    const args = read("a", "--limit", "3", "--fast", "--set", "k=v=w", "--set", "k=last", "--ids", "1, 2", "--tag=x");
    const limit: number | undefined = args.get("limit");
    const set: Readonly<Record<string, string>> = args.get("set");
    const from: string = args.get("FROM");
    assert.deepEqual([limit, set, from], [3, { k: "last" }, "a"]);
    assert.deepEqual([args.get("fast"), args.get("ids"), args.get("tag")], [true, ["1", "2"], ["x"]]);
    assert.deepEqual(
      [args.has("limit"), args.has("port"), args.has("FROM"), args.has("TO")],
      [true, false, true, false],
    );
    assert.equal(read("a", "--memory", "1.5 GiB").get("memory"), 1.5 * 2 ** 30);
  });

  it("that are absent are undefined, empty, or what the table has for them", () => {
    const args = read("a");
    const names = ["name", "limit", "ids", "kind", "memory", "TO"] as const;
    assert.deepEqual(
      names.map((name) => args.get(name)),
      names.map(() => undefined),
    );
    assert.deepEqual([args.get("fast"), args.get("tag"), args.get("set"), args.get("out")], [false, [], {}, "./out"]);
  });

  it("may lack the value of an option that has its own", () => {
    assert.deepEqual([read("a", "--sheet", "x.png").get("sheet"), read("--sheet", "a").get("sheet")], ["x.png", ""]);
    assert.equal(read("--sheet", "a").get("FROM"), "a");
    assert.equal(read("a", "--sheet", "--fast").get("sheet"), "");
  });

  it("may be many operands, or none if the table has a value for it", () => {
    const many = { summary: "", operands: { IMAGE: operands("images") }, options: {} } satisfies Command;
    const images = readArguments<ValuesOf<typeof many.operands>>("see", many, ["a", "b"])!;
    assert.deepEqual(images.get("IMAGE"), ["a", "b"]);
    const own = { summary: "", operands: { DIR: operandOr(".", "a folder") }, options: {} } satisfies Command;
    assert.equal(readArguments<ValuesOf<typeof own.operands>>("see", own, [])!.get("DIR"), ".");
  });

  it("that ask for help are not arguments, whatever else they are", () => {
    for (const argv of [["--help"], ["-h", "a", "b", "c"], ["--limit", "x", "--help"]]) {
      assert.equal(readArguments("do", table, argv), undefined, argv.join(" "));
    }
  });

  it("are refused in one sentence as far as they cannot be read", async () => {
    for (const [argv, sentence] of [
      [[], "Usage: latentkit do FROM [TO]; latentkit do --help shows the options."],
      [["a", "b", "c"], 'Usage: latentkit do FROM [TO]; unexpected argument "c"; quote values that contain spaces.'],
      [["a", "--fas"], "Unknown option --fas. Did you mean --fast?"],
      [["a", "--name"], "--name: expected a value, received none."],
      [
        ["a", "--name", "--fast"],
        "--name: expected a value, received none; write one that begins with a dash as --name=-….",
      ],
      [["a", "--fast=x"], "--fast: expected no value, received one."],
      [["a", "--constructor"], "Unknown option --constructor. latentkit do --help shows the options."],
    ] as const)
      await refuses(() => read(...argv), "usage.invalid", exactly(sentence));
  });

  it("are refused in one sentence when their wrong value is asked for", async () => {
    for (const [name, value, expected] of [
      ["limit", "0", "a whole number from 1"],
      ["limit", "1.5", "a whole number from 1"],
      ["limit", "9007199254740993", "a whole number from 1"],
      ["port", "65536", "0 to 65535"],
      ["kind", "young", "old, new"],
      ["set", "=v", "KEY=VALUE"],
      ["memory", "6", "bytes, such as 6GB or 500MiB"],
      ["memory", "2000GB", "bytes, such as 6GB or 500MiB"],
    ] as const) {
      const args = read("a", `--${name}`, value);
      const sentence = `--${name}: expected ${expected}, received ${JSON.stringify(value)}.`;
      await refuses(() => args.get(name), "usage.invalid", exactly(sentence));
    }
    const twice = read("a", "--graph", "x=1", "--graph", "x=2");
    await refuses(() => twice.get("graph"), "usage.invalid", exactly('--graph: expected the name "x" once.'));
  });

  it("that exclude each other are refused with the reason", async () => {
    const args = read("a", "--alone", "x", "--limit", "1");
    const sentence = "--limit cannot be combined with --alone: it is alone.";
    await refuses(() => args.get("alone"), "usage.invalid", exactly(sentence));
    assert.equal(read("a", "--alone", "x").get("alone"), "x");
    assert.equal(read("a", "--limit", "1").get("alone"), undefined);
  });
});

const exactly = (sentence: string) => new RegExp(`^${sentence.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);
