import assert from "node:assert/strict";
import { parseJson } from "#src/io/json/lossless.js";
import { bendOf } from "#src/nodes/bends.js";
import { inCells } from "#src/nodes/cells.js";
import { boolean, choice, float, type InputSpec, int, seed, text } from "#src/nodes/inputs.js";
import { tryConvert } from "#src/nodes/values.js";

/** The bend of a value as a graph's JSON has it. */
function bendIn(spec: InputSpec, json: string): string | undefined {
  const received = parseJson(json);
  const conversion = tryConvert(spec, received, { anyText: true });
  assert.ok(conversion.ok, json);
  return bendOf(spec, received, conversion.value);
}

describe("bendOf", () => {
  const bent: readonly (readonly [string, InputSpec, string, string])[] = [
    ["a fraction for INT", int(), "20.5", "20.5 becomes 20"],
    ["a negative fraction for INT", int(), "-0.5", "-0.5 becomes 0"],
    ["a fraction of many digits", int(), "20.50", "20.50 becomes 20"],
    ["true for INT", int(), "true", "true becomes 1"],
    ["a float beyond 2^53 for a seed", seed(), "9007199254740993.0", "9007199254740993.0 becomes 9007199254740992"],
    ["a side within a cell", inCells(int()), "510", "510 becomes 504"],
    ["a side with a fraction", inCells(int()), "510.5", "510.5 becomes 504"],
    ["true for FLOAT", float(), "true", "true becomes 1"],
    ["an integer beyond 2^53 for FLOAT", float(), "9007199254740993", "9007199254740993 becomes 9007199254740992"],
    ["a number beyond floats", float(), "1e400", "1e400 becomes Infinity"],
    ["a number below floats", float(), "1e-400", "1e-400 becomes 0"],
    ["true for STRING", text(), "true", 'true becomes "True"'],
    ["a list for STRING", text(), "[1, 2]", 'a list of 2 becomes "[1, 2]"'],
    ["2 for BOOLEAN", boolean(), "2", "2 becomes true"],
    ["true for a choice of numbers", choice([1, 2]), "true", "true becomes 1"],
  ];
  for (const [what, spec, json, expected] of bent) {
    it(`names both values of ${what}`, () => assert.ok(bendIn(spec, json)?.startsWith(expected), bendIn(spec, json)));
  }

  const kept: readonly (readonly [InputSpec, readonly string[]])[] = [
    [int(), ["7", "7.0", "7e0", "-0", '"7"', '" 7 "', "1e3", '"+7"']],
    [seed(), ["18446744073709551615", '"18446744073709551615"', "1.84467E+19"]],
    [inCells(int()), ["512", "512.0"]],
    [float(), ["7", "7.0", "0.10", "0.1", '"0.1"', '"inf"', "1e-7", "0.0", "18446744073709551616", "1e20"]],
    [text(), ['"a"', "7", "7.0", "1e3", "0.5", "1e-7", "18446744073709551615"]],
    [boolean(), ["true", "0", "1", "1.0", '"false"']],
    [choice([1, 0.5, "a"]), ["1", "1.0", "0.50", '"a"']],
  ];
  for (const [spec, values] of kept) {
    it(`leaves ${spec.type} alone where a value means the same: ${values[0]}`, () => {
      for (const json of values) assert.equal(bendIn(spec, json), undefined, json);
    });
  }

  it("cuts a number as long as a hostile graph may hold", () => {
    const bend = bendIn(float(), `1${"0".repeat(300)}1`);
    assert.ok(bend !== undefined && bend.length < 450, bend);
    assert.equal(bendIn(int(), `0.${"0".repeat(4000)}1`)?.length, 80 + " becomes 0".length);
  });
});
