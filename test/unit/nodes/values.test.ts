import assert from "node:assert/strict";
import { type ErrorCode, LatentkitError } from "#src/base/errors.js";
import { NumberLiteral } from "#src/io/json/lossless.js";
import { pythonText } from "#src/io/python-text.js";
import type { ComfyInput, InputSpec } from "#src/nodes/inputs.js";
import { boolean, choice, float, image, int, seed, text, toInputSpec } from "#src/nodes/inputs.js";
import { type ConvertOptions, convertInput, isWidget, plain, tryConvert } from "#src/nodes/values.js";

const at = { nodeId: "12", node: "ext stub", input: "x" };
const convert = (spec: InputSpec, value: unknown, options?: ConvertOptions) => convertInput(spec, value, at, options);
const literal = (digits: string) => new NumberLiteral(digits);

function refused(spec: InputSpec, value: unknown, code: ErrorCode, message?: string, options?: ConvertOptions): void {
  assert.throws(
    () => convert(spec, value, options),
    (error) => {
      assert.ok(error instanceof LatentkitError);
      assert.equal(error.code, code, error.message);
      if (message !== undefined) assert.equal(error.message, message);
      assert.deepEqual([error.details.nodeId, error.details.node, error.details.input], ["12", "ext stub", "x"]);
      return true;
    },
  );
}

describe("widget values", () => {
  it("INT: numbers, their texts and booleans, cut towards zero", () => {
    const spec = int({ min: -10, max: 10 });
    const pairs: [unknown, number][] = [
      [7, 7],
      ["7", 7],
      [" 7 ", 7],
      [3.7, 3],
      [-3.7, -3],
      [-0.5, 0],
      ["-0", 0],
      ["+5", 5],
      [true, 1],
      [5n, 5],
      [literal("7.0"), 7],
      [literal("-0"), 0],
      ["１", 1],
      ["٣", 3],
      ["𝟝", 5],
    ];
    for (const [value, expected] of pairs) assert.ok(Object.is(convert(spec, value), expected), String(value));
    for (const value of ["3.7", "1_0", "0x5", "", "true", "1e3", "5 5", {}, [], () => 1, "9".repeat(5000)]) {
      refused(spec, value, "input.wrong-type");
    }
    refused(
      spec,
      11,
      "input.above-maximum",
      'Node 12 (ext stub), input "x": expected a whole number from -10 to 10, received 11.',
    );
    refused(spec, -11, "input.below-minimum");
    refused(spec, 1e300, "input.above-maximum");
    refused(spec, 9999999999999999999999n, "input.above-maximum");
    for (const value of [Number.NaN, Infinity, literal("1e400")]) refused(spec, value, "input.not-finite");
    refused(
      spec,
      undefined,
      "input.missing",
      'Node 12 (ext stub), input "x": expected a whole number from -10 to 10, received nothing.',
    );
    const given = 'Node 12 (ext stub), input "x": expected a whole number from -10 to 10, received null.';
    refused(spec, null, "input.missing", given);
  });

  it("a seed is a bigint over its whole range", () => {
    const spec = seed();
    for (const value of [18446744073709551615n, "18446744073709551615"])
      assert.equal(convert(spec, value), 18446744073709551615n);
    assert.equal(convert(spec, 5), 5n);
    assert.equal(convert(spec, literal("5.0")), 5n);
    refused(spec, 18446744073709551616n, "input.above-maximum");
    refused(spec, -1, "input.below-minimum");
    assert.equal(convert(int(), 2n ** 60n), 2n ** 60n);
    assert.equal(convert(toInputSpec(["INT", { max: 2 ** 64 }]), 3), 3n);
  });

  it("FLOAT: numbers and their texts", () => {
    const spec = float({ min: -1, max: 1 });
    const pairs: [unknown, number][] = [
      [0.5, 0.5],
      ["0.5", 0.5],
      ["1e-1", 0.1],
      ["  0.25 ", 0.25],
      [1, 1],
      [true, 1],
      ["-1.", -1],
      [".5", 0.5],
      [literal("0.10"), 0.1],
      [1n, 1],
    ];
    for (const [value, expected] of pairs) assert.equal(convert(spec, value), expected);
    for (const value of ["abc", "", "1_0.0", "0x1", "1e", {}, [1]]) refused(spec, value, "input.wrong-type");
    for (const value of ["nan", Number.NaN, "-NaN"]) refused(spec, value, "input.not-finite");
    refused(spec, "inf", "input.above-maximum");
    refused(spec, -Infinity, "input.below-minimum");
    refused(float({ min: 0 }), Infinity, "input.not-finite");
    refused(float({ min: 0 }), Number.NaN, "input.not-finite", undefined, { skipRange: true });
    refused(float(), 10n ** 400n, "input.not-finite");
    assert.equal(convert(float(), "-inf"), -Infinity);
    assert.ok(Number.isNaN(convert(float(), "nan")));
    assert.equal(convert(spec, 5, { skipRange: true }), 5);
  });

  it("STRING: scalars as Python prints them; lists and objects only in graphs", () => {
    const pairs: [unknown, string][] = [
      ["a", "a"],
      ["", ""],
      [5, "5"],
      [1.5, "1.5"],
      [true, "True"],
      [literal("7.0"), "7.0"],
      [literal("0.10"), "0.1"],
      [1e-7, "1e-07"],
      [2n ** 64n, "18446744073709551616"],
    ];
    for (const [value, expected] of pairs) assert.equal(convert(text(), value), expected);
    for (const value of [{ a: 1 }, [1], () => 1, Symbol("s")]) refused(text(), value, "input.wrong-type");
    assert.equal(convert(text(), { a: 1 }, { anyText: true }), "{'a': 1}");
    assert.equal(convert(text(), [1, "b"], { anyText: true }), "[1, 'b']");
    refused(text(), null, "input.missing");
    refused(text({ optional: true }), null, "input.wrong-type");
    assert.equal(
      pythonText([null, true, "it's", "a\"'b\n", { k: literal("1.0") }]),
      `[None, True, "it's", 'a"\\'b\\n', {'k': 1.0}]`,
    );
  });

  it('BOOLEAN: booleans, numbers, "true" and "false"', () => {
    const pairs: [unknown, boolean][] = [
      [true, true],
      [false, false],
      ["true", true],
      ["false", false],
      [0, false],
      [1, true],
      [literal("0.0"), false],
      [2n, true],
    ];
    for (const [value, expected] of pairs) assert.equal(convert(boolean(), value), expected);
    for (const value of ["", "0", "yes", {}, { a: 1 }, []]) refused(boolean(), value, "input.wrong-type");
    refused(boolean(), Number.NaN, "input.not-finite");
    refused(
      boolean(),
      "True",
      "input.wrong-type",
      'Node 12 (ext stub), input "x": expected true or false, received "True". Did you mean true?',
    );
  });

  it("COMBO: suggests a file by its name without the ending", () => {
    const files = (value: string, names: readonly string[]): string | undefined => {
      const conversion = tryConvert({ ...choice(names), files: "vae" }, value);
      return conversion.ok ? value : conversion.misfit.suggestion;
    };
    assert.equal(files("zzz.safetensors", ["a.safetensors"]), undefined);
    assert.equal(files("ae.safetensors", ["q.safetensors", "ext.safetensors"]), undefined);
    assert.equal(files("vae-ft-mse.ckpt", ["a.safetensors", "vae-ft-mse.safetensors"]), "vae-ft-mse.safetensors");
    assert.equal(files("vae-ft-mes.safetensors", ["a.pt", "vae-ft-mse.pt", "vae-ft-mse.safetensors"]), "vae-ft-mse.pt");
  });

  it("COMBO: the listed value, by Python's equality", () => {
    const spec = choice(["red", "green", "blue"]);
    assert.equal(convert(spec, "red"), "red");
    refused(
      spec,
      "gren",
      "input.not-in-list",
      'Node 12 (ext stub), input "x": expected red, green or blue, received "gren". Did you mean green?',
    );
    refused(spec, "Red", "input.not-in-list");
    const mixed = toInputSpec([[1, 2, "x", 2.5]]);
    for (const value of [1, true, literal("1.0"), 1n]) assert.equal(convert(mixed, value), 1);
    for (const value of ["1", false, {}, "y"]) refused(mixed, value, "input.not-in-list");
    refused(toInputSpec([[]]), "x", "input.not-in-list");
    const listed: ComfyInput = ["COMBO", { options: ["p", "q"] }];
    refused(toInputSpec(listed), "bogus", "input.not-in-list");
    const placed = choice(({ host }) => host?.checkpoints() ?? []);
    assert.equal(convert(placed, "m", { context: { host: { checkpoints: () => ["m"] } } }), "m");
    refused(placed, "m", "input.not-in-list");
    assert.equal(convert(toInputSpec(["COMBO"]), "anything"), "anything");
    const open = choice(({ host }) => host?.files?.("loras"));
    assert.equal(convert(open, "any/thing"), "any/thing");
    for (const value of [1, true, {}]) refused(open, value, "input.wrong-type");
    const host = { checkpoints: () => [], files: () => ["a"] };
    assert.equal(convert(open, "a", { context: { host } }), "a");
    const late = { checkpoints: (async () => ["m"]) as never };
    assert.throws(
      () => convert(placed, "m", { context: { host: late } }),
      /^LatentkitError: Choices of an input, or of a host's files: expected a list, at once, received a Promise\.$/,
    );
    refused(
      choice(Array.from({ length: 25 }, (_, i) => `f${i}`)),
      "zzz",
      "input.not-in-list",
      'Node 12 (ext stub), input "x": expected one of 25 choices, received "zzz".',
    );
  });

  it("absent optional inputs become their default, or undefined", () => {
    assert.equal(convert(int({ optional: true }), undefined), undefined);
    assert.equal(convert(int({ optional: true, default: 3 }), undefined), 3);
    assert.equal(convert(image({ optional: true }), null), undefined);
    refused(int({ optional: true }), null, "input.wrong-type");
    refused(int({ default: 3 }), undefined, "input.missing");
    refused(image(), null, "input.missing");
  });

  it("other types pass, literals as numbers", () => {
    assert.deepEqual(convert(toInputSpec(["*"]), { a: [literal("7.0")] }), { a: [7] });
    const date = new Date(0);
    assert.equal(plain(date), date);
    assert.deepEqual(["INT", "*", "INT,FLOAT", "IMAGE", "IMAGE,MASK"].map(isWidget), [true, true, true, false, false]);
  });
});
