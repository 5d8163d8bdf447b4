// docs/performance.md: some rows of bench/figures.json, between the comments <!-- bench --> and <!-- /bench -->.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { between, heading } from "../../bench/report.mjs";
import { root } from "../setup.mjs";
import { table } from "./markdown.mjs";

/** Ids of rows, each with the peer that it is shown beside. */
const SHOWN = /** @type {const} */ ([
  ["randn 16x4x128x128", "torch"],
  ["axpy 1x4x64x64", "torch"],
  ["average 16x4x128x128", "torch"],
  ["mask blend 16x4x128x128", "numpy"],
  ["std, then divide 16x4x128x128", "numpy"],
  ["composite with mask 1024x1024, 3 channels", "torch"],
  ["float to uint8 8x1024x1024x3", "torch"],
  ["PNG encode 1024x1024 natural", "pillow"],
  ["PNG encode 1024x1024 text", "sharp"],
  ["PNG decode 1024x1024 natural", "sharp"],
]);

export function pageWithFigures() {
  const figures = JSON.parse(readFileSync(join(root, "bench/figures.json"), "utf8"));
  const rows = SHOWN.map(([id, name]) => {
    const row = figures.rows.find((other) => other.id === id);
    const peer = row?.peers.find((other) => other.name === name);
    if (peer === undefined) throw new Error(`bench/figures.json: expected a row ${id} with the peer ${name}.`);
    return [row.operation, row.shape, timeOf(row.ours, row), name, timeOf(peer, row), `${peer.ratio.toPrecision(3)}x`];
  });
  const content = table([["Operation", "Shape", "latentkit", "Peer", "Its time", "Ratio"], ...rows]);
  const page = readFileSync(join(root, "docs/performance.md"), "utf8");
  return between(page, `\n${heading(figures)}\n\n${content}\n\n`);
}

/** Three digits; short times read better in microseconds. */
function timeOf({ median }, { unit }) {
  const isShort = unit === "ms" && median < 0.1;
  const value = isShort ? median * 1000 : median;
  return `${value < 1000 ? value.toPrecision(3) : value.toFixed(0)} ${isShort ? "us" : unit}`;
}
