import assert from "node:assert/strict";

interface Row {
  id: string;
  ours: { median: number };
  peers: { name: string; ratio?: number }[];
}
interface Figures {
  lossesOf(rows: Row[], before: Row[]): { id: string; before: number; now: number }[];
  joined(before: Row[], measured: Row[], ids: string[]): Row[];
}
interface Timing {
  summary(values: number[]): { median: number; p10: number; p90: number };
}

const load = (name: string) => import(new URL(`../../../../bench/${name}.mjs`, import.meta.url).href);
const row = (median: number, ratio?: number): Row => ({
  id: "randn",
  ours: { median },
  peers: ratio === undefined ? [{ name: "torch" }] : [{ name: "torch", ratio }],
});

describe("bench/figures", () => {
  let script: Figures;
  before(async () => {
    script = (await load("figures")) as Figures;
  });

  it("counts a loss by the ratio if there is a peer, by the time if there is none", () => {
    assert.deepEqual(script.lossesOf([row(9, 3.7)], [row(1, 4)]), []);
    assert.deepEqual(script.lossesOf([row(1, 3.5)], [row(1, 4)]), [{ id: "randn, torch", before: 4, now: 3.5 }]);
    assert.deepEqual(script.lossesOf([row(1.2)], [row(1)]), [{ id: "randn", before: 1, now: 1.2 }]);
    assert.deepEqual(script.lossesOf([row(1.05)], [row(1)]), []);
  });

  it("joins the rows of two runs: new ones replace old ones, in the given order", () => {
    const named = (id: string, median: number) => ({ ...row(median), id });
    const before = [named("a", 1), named("b", 1), named("gone", 1)];
    const rows = script.joined(before, [named("b", 2), named("c", 2)], ["c", "a", "b"]);
    assert.deepEqual(rows, [named("c", 2), named("a", 1), named("b", 2)]);
  });

  it("compares nothing that only one run has", () => {
    assert.deepEqual(script.lossesOf([row(9)], [row(1, 4)]), []);
    assert.deepEqual(script.lossesOf([row(9)], []), []);
  });
});

describe("bench/timing", () => {
  it("interpolates percentiles", async () => {
    const { summary } = (await load("timing")) as Timing;
    assert.deepEqual(summary([4, 1, 3, 2]), { median: 2.5, p10: 1.3, p90: 3.7 });
    assert.deepEqual(summary([7]), { median: 7, p10: 7, p90: 7 });
  });
});
