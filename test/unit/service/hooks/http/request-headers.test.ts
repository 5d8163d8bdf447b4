import assert from "node:assert/strict";
import { readAccept, waitSeconds, weightOf } from "#src/service/hooks/http/request-headers.js";

describe("waitSeconds", () => {
  for (const [prefer, seconds] of [
    [undefined, undefined],
    ["", undefined],
    ["wait=60", 60],
    ["WAIT = 60", 60],
    ['wait="60"', 60],
    ["respond-async, wait=10", 10],
    ['x="a, wait=3"; y=2, wait=7; z=1', 7],
    ["wait=5, wait=9", 5],
    ["wait", undefined],
    ["wait=", undefined],
    ["wait=1.5", undefined],
    ["wait=-1", undefined],
    ["wait=1e3", undefined],
    ["wait=2147483647", 2147483647],
    [`wait=${"9".repeat(400)}`, Number.POSITIVE_INFINITY],
    ["wait=soon, wait=9", undefined],
    ["waiting=9", undefined],
    ["wait=0", 0],
  ] as const) {
    it(`${prefer?.slice(0, 40)}: ${seconds}`, () => assert.equal(waitSeconds(prefer), seconds));
  }
});

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
