import assert from "node:assert/strict";
import { NumberLiteral } from "#src/io/json/lossless.js";
import { type Exact, type Limits, mismatchOf } from "#src/render/schema/property.js";

const fits = (limits: Limits<Exact>, ...values: unknown[]) => {
  for (const value of values) assert.equal(mismatchOf(limits, value), undefined, String(value));
};
const refuses = (limits: Limits<Exact>, expected: string, ...values: unknown[]) => {
  for (const value of values) assert.equal(mismatchOf(limits, value)?.expected, expected, String(value));
};

describe("mismatchOf", () => {
  it("integers: bounds to the last digit, steps, texts of digits", () => {
    const seed: Limits<Exact> = { type: "integer", minimum: 0n, maximum: 18446744073709551615n };
    fits(seed, 0, 7n, 18446744073709551615n, "18446744073709551615", " 7 ", "٧", new NumberLiteral("7.0"));
    const expected = "a whole number from 0 to 18446744073709551615";
    refuses(
      seed,
      expected,
      -1,
      18446744073709551616n,
      "18446744073709551616",
      1.5,
      "1.5",
      "",
      "7a",
      true,
      null,
      [1],
      {},
    );
    refuses(seed, expected, "9".repeat(100_000), Number.NaN, Number.POSITIVE_INFINITY);
    const shortened = ["1.84467E+19", "1,84467E+19", new NumberLiteral("1.84467E+19"), 2 ** 60];
    for (const value of shortened) {
      assert.equal(mismatchOf(seed, value, true)?.expected, `${expected} with all its digits`);
      assert.equal(mismatchOf({}, value, true)?.expected, "a seed with all its digits");
    }
    assert.equal(mismatchOf(seed, "18446744073709551615", true), undefined);
    const side: Limits<Exact> = { type: "integer", minimum: 16, maximum: 64, multipleOf: 8 };
    fits(side, 16, 64n, "24");
    refuses(side, "a whole number from 16 to 64, a multiple of 8", 20, 8, 72, "20");
    refuses({ type: "integer", minimum: 1 }, "a whole number of at least 1", 0);
    refuses({ type: "integer", maximum: 1 }, "a whole number of at most 1", 2);
    fits({ type: "integer" }, -5, 10n ** 30n);
  });

  it("numbers and booleans", () => {
    fits({ type: "number", minimum: 0, maximum: 1 }, 0, 1, "0.5", ".5", "1e-3", new NumberLiteral("1e-07"), 1n);
    refuses({ type: "number", minimum: 0, maximum: 1 }, "a number from 0 to 1", 1.001, "nan", "1,5", "0x1", "1e999");
    fits({ type: "boolean" }, true, false, "true", "false");
    refuses({ type: "boolean" }, "true or false", "yes", 1, null);
  });

  it("texts take numbers and booleans; nothing takes lists, objects and null", () => {
    for (const limits of [{ type: "string" }, { type: ["string", "number", "boolean"] }] as Limits<Exact>[]) {
      fits(limits, "", "x", 7, 7n, true, new NumberLiteral("7.0"));
      refuses(limits, "a text, number or boolean", null, ["4", 0], {}, undefined);
    }
  });

  it("choices: as the list holds them, numbers by their value", () => {
    fits({ enum: ["a", 1, true] }, "a", 1, 1n, new NumberLiteral("1.0"));
    refuses({ enum: ["a", 1] }, '"a" or 1', "1", "b", 2, ["a"], null);
    refuses({ enum: ["one"] }, '"one"', "two");
    refuses({ enum: [] }, "one of the choices (there is nothing to choose from)", "x");
    refuses({ enum: Array.from({ length: 21 }, (_, i) => i) }, "one of 21 choices", 21);
    assert.equal(mismatchOf({ enum: ["euler", "heun"] }, "eulr")?.suggestion, "euler");
  });
});
