// The table, as Markdown: it reads the same on a terminal and in the documentation.

const HEAD = ["Operation", "Shape", "Ours", "p10 … p90", "Peer", "Its median", "Ratio", "Must", ""];

/** One line for each peer of each row. `losses` are the ids that are slower than the committed figures. */
export function table(rows, losses = new Set()) {
  const lines = rows.flatMap((row) => linesOf(row, losses));
  const widths = HEAD.map((title, i) => Math.max(title.length, ...lines.map((line) => line[i].length)));
  const print = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(" | ")} |`;
  return [print(HEAD), print(widths.map((width) => "-".repeat(width))), ...lines.map(print)].join("\n");
}

function linesOf(row, losses) {
  const { ours, limit, id } = row;
  const unit = shownUnit(ours.median, row.unit);
  const operation = row.threads > 1 ? `${row.operation}, ${row.threads} threads` : row.operation;
  const spread = ours.p10 === ours.p90 ? "" : `${unit.print(ours.p10)} … ${unit.print(ours.p90)}`;
  const start = [operation, row.shape, `${unit.print(ours.median)} ${unit.name}`, spread];
  if (row.peers.length === 0) {
    const must = limit === undefined ? "" : `at most ${limit} ${row.unit}`;
    return [[...start, "", "", "", must, verdict(row.isReached, losses.has(id))]];
  }
  return row.peers.map((peer, i) => {
    const must = peer.must === undefined ? "" : `${peer.must}x`;
    const cells = i === 0 ? start : ["", "", "", ""];
    if (peer.ratio === undefined) return [...cells, peer.name, "not installed", "", must, ""];
    const theirs = `${unit.print(peer.median)} ${unit.name}`;
    const mark = verdict(peer.isReached, losses.has(`${id}, ${peer.name}`));
    return [...cells, peer.name, theirs, `${digits(peer.ratio)}x`, must, mark];
  });
}

/** Unit of a row: short times read better in microseconds. */
function shownUnit(value, unit) {
  if (unit === "ms" && value < 0.1) return { name: "us", print: (ms) => digits(ms * 1000) };
  return { name: unit, print: digits };
}

/** Three digits, or all before the point. */
const digits = (value) => (value < 1000 ? value.toPrecision(3) : value.toFixed(0));

const verdict = (isReached, isLoss) =>
  [isReached === undefined ? "" : isReached ? "yes" : "below", isLoss ? "slower" : ""].filter(Boolean).join(", ");

/** Machine, date and versions in one sentence; a load near the number of processors makes every figure doubtful. */
export const heading = ({ date, load, machine, versions }) =>
  `${machine.processor}, ${machine.processors} processors, ${machine.isa}; ` +
  `${date}, load ${load.toFixed(1)} before the run; ` +
  `${Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ")}.`;

/** Returns `text` with `content` between the markers. */
export function between(text, content) {
  const parts = /^([\s\S]*<!-- bench -->\n)[\s\S]*?(<!-- \/bench -->[\s\S]*)$/.exec(text);
  if (parts === null) throw new Error("expected the markers <!-- bench --> and <!-- /bench -->");
  return parts[1] + content + parts[2];
}
