import assert from "node:assert/strict";
import { waitSeconds } from "#src/service/hooks/http/negotiation/prefer.js";

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
    ["wait=9999999999", undefined],
    ["wait=soon, wait=9", undefined],
    ["waiting=9", undefined],
    ["wait=0", 0],
  ] as const) {
    it(`${prefer}: ${seconds}`, () => assert.equal(waitSeconds(prefer), seconds));
  }
});
