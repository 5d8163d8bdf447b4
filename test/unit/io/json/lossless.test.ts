import assert from "node:assert/strict";
import { LatentkitError } from "#src/base/errors.js";
import {
  cloneJson,
  keysInOrder,
  NumberLiteral,
  parseJson,
  printJson,
  printJsonPretty,
  printJsonUnicode,
  pythonNumber,
} from "#src/io/json/lossless.js";
import { seededInts } from "../../../helpers/seeded.js";

const refused = (text: string, pattern: RegExp, options = {}) =>
  assert.throws(
    () => parseJson(text, options),
    (error) => error instanceof LatentkitError && error.code === "graph.invalid-json" && pattern.test(error.message),
  );

describe("lossless JSON", () => {
  it("reads what JSON.parse reads", () => {
    for (const text of [
      '{"a":[1,2.5,-3,true,false,null,"x"],"b":{}}',
      " [ ] ",
      '"\\u00e9\\n\\/\\ud83d\\ude00"',
      "0",
      "-1.5",
    ]) {
      assert.deepEqual(parseJson(text), JSON.parse(text));
    }
    assert.equal(parseJson("\ufeff1"), 1);
  });

  it("keeps every digit", () => {
    assert.equal(parseJson("18446744073709551615"), 18446744073709551615n);
    assert.equal(parseJson("9007199254740991"), 9007199254740991);
    assert.equal(parseJson("9007199254740992"), 9007199254740992n);
    assert.equal(parseJson("-9007199254740993"), -9007199254740993n);
    for (const text of ["7.0", "1e-07", "0.10", "1E5", "-0", "-0.0", "1e400", "0.30000000000000004441"]) {
      const value = parseJson(text);
      assert.ok(value instanceof NumberLiteral, text);
      assert.equal(String(value), text);
      assert.equal(value.text, text);
      assert.equal(Number(value), Number(text));
      assert.equal(value.valueOf(), Number(text));
    }
    const graph = '{"10": {"seed": 18446744073709551615, "cfg": 7.0, "x": 1e-07}, "2": [0.10, -0, 5]}';
    assert.equal(printJson(parseJson(graph)), graph);
  });

  it("keeps the order of keys that look like numbers", () => {
    const value = parseJson('{"10": 1, "a": 2, "2": 3}') as Record<string, unknown>;
    assert.equal(JSON.stringify(value), '{"2":3,"10":1,"a":2}');
    assert.deepEqual(keysInOrder(value), ["10", "a", "2"]);
    delete value.a;
    value.b = 4;
    assert.deepEqual(keysInOrder(value), ["10", "2", "b"]);
    assert.equal(printJson(cloneJson(value)), '{"10": 1, "2": 3, "b": 4}');
  });

  it("names line and column of an error", () => {
    refused('{\n  "a": 1,\n  "b" 2\n}', /line 3, column 7: expected ":", received "2"/);
    refused("", /line 1, column 1: expected a value, received the end/);
    refused("[1,]", /line 1, column 4: expected a value, received "]"/);
    refused('{"a":1,}', /expected a key/);
    refused("{a:1}", /expected a key/);
    refused("[1 2]", /expected "," or "]"/);
    refused("1 2", /expected the end/);
    refused('"a', /closing quote/);
    refused('"a\nb"', /control characters/);
    refused('"\\x"', /escape/);
    refused('"\\u12g4"', /escape/);
    for (const text of ["01", "1.", ".5", "+1", "1e", "tru", "nul", "'a'", "NaN", "Infinity", "-", "--1", "0x1"]) {
      refused(text, /line 1/);
    }
  });

  it("refuses prototype keys in any spelling, and duplicate keys", () => {
    for (const key of ["__proto__", "constructor", "prototype", "\\u005f_proto__"]) {
      refused(`{"a": {"${key}": 1}}`, /line 1, column 8: the key .* is not allowed/);
    }
    refused('{"a": 1, "a": 2}', /column 10: duplicate key "a"/);
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
  });

  it("refuses depth without recursing into it", () => {
    const deep = (n: number) => "[".repeat(n) + "]".repeat(n);
    assert.ok(Array.isArray(parseJson(deep(256))));
    refused(deep(257), /deeper than 256/);
    refused(deep(5), /deeper than 4/, { maxDepth: 4 });
    refused("[".repeat(100_000), /deeper than 256/);
    refused('{"a":'.repeat(100_000), /deeper than 256/);
    refused("[".repeat(1000), /deeper than 256/, { maxDepth: 1e9 });
    refused("1".repeat(5000), /more than 4300 digits/);
  });

  it("reads NaN and infinities on request", () => {
    const options = { nonFinite: true };
    assert.deepEqual(parseJson("[NaN, Infinity, -Infinity, -1, null]", options), [
      Number.NaN,
      Infinity,
      -Infinity,
      -1,
      null,
    ]);
  });

  it("prints in the layout of Python's json.dumps", () => {
    assert.equal(printJson({ a: [1, 2.5, "x"], b: {}, c: [] }), '{"a": [1, 2.5, "x"], "b": {}, "c": []}');
    assert.equal(printJson('é\n"\\/\u007f\u0001😀'), '"\\u00e9\\n\\"\\\\/\\u007f\\u0001\\ud83d\\ude00"');
    assert.equal(
      printJson([1e-7, 1e16, 2 ** 53, 0.1, -0, Number.NaN, Infinity]),
      "[1e-07, 1e+16, 9007199254740992.0, 0.1, -0.0, null, null]",
    );
    assert.equal(printJson({ a: undefined, b: [undefined], c: 5n }), '{"b": [null], "c": 5}');
    assert.equal(printJson(undefined), "null");
    assert.equal(
      printJsonPretty({ a: [1, { b: "é" }], c: [] }),
      '{\n    "a": [\n        1,\n        {\n            "b": "é"\n        }\n    ],\n    "c": []\n}',
    );
    // halves of pairs would be lost in UTF-8
    assert.equal(printJsonUnicode({ é: ["🦊\n", "\ud83e", 1e-7] }), '{"é": ["🦊\\n", "\\ud83e", 1e-07]}');
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    assert.throws(() => printJson(cyclic), LatentkitError);
    assert.throws(() => cloneJson(cyclic), LatentkitError);
  });

  it("prints floats as Python's repr", () => {
    const pairs: [number, string][] = [
      [7, "7.0"],
      [0, "0.0"],
      [-0, "-0.0"],
      [0.1, "0.1"],
      [1e-4, "0.0001"],
      [1e-5, "1e-05"],
      [1.5e-7, "1.5e-07"],
      [1e15, "1000000000000000.0"],
      [1e16, "1e+16"],
      [1.25e22, "1.25e+22"],
      [1e-300, "1e-300"],
      [123.456, "123.456"],
      [-2.5, "-2.5"],
      [Number.NaN, "nan"],
      [Infinity, "inf"],
      [-Infinity, "-inf"],
      [5e-324, "5e-324"],
      [120, "120.0"],
    ];
    for (const [x, text] of pairs) assert.equal(pythonNumber(x), text);
  });

  it("reads back what it prints, for random values", () => {
    const next = seededInts(12345);
    const make = (depth: number): unknown => {
      const kind = next(depth > 4 ? 5 : 7);
      if (kind === 0) return next(1000) - 500;
      if (kind === 1) return (next(100000) - 50000) / 2 ** next(60);
      if (kind === 2) return String.fromCharCode(next(65536), next(128), next(65536));
      if (kind === 3) return BigInt(next(1e9)) * 10n ** 12n + 2n ** 53n;
      if (kind === 4) return [true, false, null][next(3)];
      if (kind === 5) return Array.from({ length: next(4) }, () => make(depth + 1));
      return Object.fromEntries(Array.from({ length: next(4) }, (_, i) => [`${next(50)}k${i}`, make(depth + 1)]));
    };
    for (let i = 0; i < 2000; i++) {
      const printed = printJson(make(0));
      assert.equal(printJson(parseJson(printed)), printed);
      JSON.parse(printed);
    }
  });

  it("tells whole numbers of few digits from all others", () => {
    assert.deepEqual(parseJson("[0, 7, 999999999999999, 1234567890123456789, 12e3, 1.50]"), [
      0,
      7,
      999999999999999,
      1234567890123456789n,
      new NumberLiteral("12e3"),
      new NumberLiteral("1.50"),
    ]);
    for (const text of ["01", "00", "1 2", "-", "1x"]) refused(text, /./);
  });

  it("prints long texts as it prints short ones", () => {
    const units = Array.from({ length: 0x300 }, (_, i) => String.fromCharCode(i));
    const text = ["\u{1f98a}", "\ud800", "\udfff", "\uffff", "\u2028", "\u007f", ...units].join("");
    const short = [...Array(text.length).keys()].map((i) => printJson(text[i]).slice(1, -1)).join("");
    assert.equal(printJson(text.repeat(3)), `"${short.repeat(3)}"`);
    assert.equal(printJson(text.repeat(3)).length, short.length * 3 + 2);
    assert.deepEqual(JSON.parse(printJson(text.repeat(3))), text.repeat(3));
  });
});
