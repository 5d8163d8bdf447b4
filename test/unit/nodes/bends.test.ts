import assert from "node:assert/strict";
import { parseJson } from "#src/io/json/lossless.js";
import { bendOf } from "#src/nodes/bends.js";
import { boolean, choice, float, type InputSpec, int, seed, text } from "#src/nodes/inputs.js";
import { invokeNode } from "#src/nodes/invoke.js";
import { inCells } from "#src/nodes/latents.js";
import { tryConvert } from "#src/nodes/values.js";
import { Tensor } from "#src/tensor/tensor.js";

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
    it(`leaves ${spec.type} alone if a value means the same: ${values[0]}`, () => {
      for (const json of values) assert.equal(bendIn(spec, json), undefined, json);
    });
  }

  it("cuts a number as long as a hostile graph may hold", () => {
    const bend = bendIn(float(), `1${"0".repeat(300)}1`);
    assert.ok(bend !== undefined && bend.length < 450, bend);
    assert.equal(bendIn(int(), `0.${"0".repeat(4000)}1`)?.length, 80 + " becomes 0".length);
  });
});

describe("Nodes that take less of their data than was asked for", () => {
  const image = Tensor.zeros([2, 20, 30, 3]);
  const latent = { samples: Tensor.zeros([2, 4, 10, 12]) };
  const vae = { encode: async () => Tensor.zeros([2, 4, 2, 3]), decode: async () => Tensor.zeros([1, 64, 64, 3]) };
  const mask = Tensor.zeros([1, 20, 30]);
  const cut = 'input "pixels": cropped from 30 x 20 to 24 x 16 pixels: the VAE needs multiples of 8.';
  const ends = (input: string, from: number, to: number, what: string) =>
    `input "${input}": ${from} becomes ${to}: the ${what} ends there.`;
  const cases: readonly (readonly [string, Record<string, unknown>, readonly string[]])[] = [
    ["VAEEncode", { pixels: image, vae }, [cut]],
    ["VAEEncodeTiled", { pixels: image, vae, tile_size: 512, overlap: 64 }, [cut]],
    ["VAEEncodeForInpaint", { pixels: image, vae, mask }, [cut]],
    ["InpaintModelConditioning", { pixels: image, vae, mask, positive: [], negative: [] }, [cut]],
    ["InstructPixToPixConditioning", { pixels: image, vae, positive: [], negative: [] }, [cut]],
    ["VAEEncode", { pixels: Tensor.zeros([1, 16, 24, 3]), vae }, []],
    [
      "VAEDecodeTiled",
      { samples: { samples: Tensor.zeros([1, 4, 8, 8]) }, vae, tile_size: 64, overlap: 32 },
      ['input "overlap": 32 becomes 16, a quarter of tile_size.'],
    ],
    [
      "ImageCrop",
      { image, width: 40, height: 8, x: 4, y: 99 },
      [ends("width", 40, 26, "image"), ends("height", 8, 1, "image"), ends("y", 99, 19, "image")],
    ],
    ["ImageCrop", { image, width: 30, height: 20, x: 0, y: 0 }, []],
    ["CropMask", { mask, width: 40, height: 20, x: 0, y: 0 }, [ends("width", 40, 30, "mask")]],
    ["ImageFromBatch", { image, batch_index: 2, length: 1 }, [ends("batch_index", 2, 1, "batch")]],
    ["LatentFromBatch", { samples: latent, batch_index: 1, length: 4 }, [ends("length", 4, 1, "batch")]],
    ["LatentCrop", { samples: latent, width: 64, height: 128, x: 0, y: 16 }, [ends("height", 128, 64, "latent")]],
    ["LatentCrop", { samples: latent, width: 96, height: 80, x: 0, y: 0 }, []],
    ["LatentCut", { samples: latent, dim: "x", index: -20, amount: 3 }, [ends("index", -20, -12, "latent")]],
    ["LatentCut", { samples: latent, dim: "y", index: 8, amount: 3 }, [ends("amount", 3, 2, "latent")]],
  ];
  for (const [node, inputs, expected] of cases) {
    const what = expected.length === 0 ? "is silent about what it takes whole" : "names both values";
    it(`${node} ${what}: ${expected.join(" ") || Object.keys(inputs).join()}`.slice(0, 80), async () => {
      const log: string[] = [];
      await invokeNode(node, inputs, { log: (message) => log.push(message) });
      assert.deepEqual(log, expected);
    });
  }
});
