import assert from "node:assert/strict";
import { readAccept, weightOf } from "#src/service/hooks/http/negotiation/accept.js";

describe("weightOf", () => {
  for (const [accept, png, json] of [
    ["", 0, 0],
    ["*/*", 0, 0],
    ["image/*", 1, 0],
    ["IMAGE/PNG;q=0.5, application/json ; q = 0.9", 0.5, 0.9],
    ["image/*, image/png;q=0", 0, 0],
    ["image/png;q=2, application/*;q=0.1", 0, 0.1],
    ['x;a=",image/png,", application/json', 0, 1],
  ] as const) {
    it(`of "${accept}"`, () => {
      const accepted = readAccept(accept);
      assert.deepEqual([weightOf(accepted, "image/png"), weightOf(accepted, "application/json")], [png, json]);
    });
  }
});
