import type { Run } from "../api/types.ts";

// decision 288
/** Most runs that one batch starts: as many again fit the page of a list when it is resumed. */
export const MOST_RUNS = 100;
/** Characters of a tag. */
const TAG_CHARACTERS = 64;
const PREFIX = "batch ";

/** Values of one parameter, of which each run of a batch has one. */
export interface Axis {
  readonly key: string;
  readonly values: readonly string[];
}

/** A run of a batch before it is started. */
export interface PlannedRun {
  readonly values: Readonly<Record<string, string | boolean>>;
  readonly tags: readonly string[];
}

/** Runs of all combinations of the axes, with the tags by which the batch is found and laid out again. */
export function planRuns(
  id: string,
  values: Readonly<Record<string, string | boolean>>,
  [x, y]: readonly Axis[],
): PlannedRun[] {
  return entriesOf(y).flatMap(([row, down]) =>
    entriesOf(x).map(([column, across]) => ({
      values: { ...values, ...(x && { [x.key]: across }), ...(y && { [y.key]: down }) },
      tags: [batchTag(id), ...tagOf("x", column, x, across), ...tagOf("y", row, y, down)],
    })),
  );
}

/** Lines of a text that hold something. */
export const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

export const batchTag = (id: string): string => `${PREFIX}${id}`;

/** Id of the batch of a run; undefined where it has none. */
export const batchOf = (tags: readonly string[]): string | undefined =>
  tags.find((tag) => tag.startsWith(PREFIX))?.slice(PREFIX.length);

const entriesOf = (axis: Axis | undefined): [position: number, value: string][] =>
  axis === undefined ? [[0, ""]] : axis.values.map((value, i) => [i, value]);

function tagOf(name: string, position: number, axis: Axis | undefined, value: string): string[] {
  if (axis === undefined) return [];
  const tag = `${name}${position} ${axis.key}: ${value}`.replace(/\p{Cc}/gu, " ").slice(0, TAG_CHARACTERS);
  // half of a character is no text
  return [tag.replace(/[\uD800-\uDBFF]$/, "")];
}

/** A batch as its runs tell it. */
export interface Grid {
  /** Labels of the columns and rows; [""] where there is no such axis. */
  readonly columns: readonly string[];
  readonly rows: readonly string[];
  /** Newest run at each place, by "column row". */
  readonly cells: ReadonlyMap<string, Run>;
}

/** Lays out the runs of a batch, newest first, by their tags. */
export function layOutRuns(runs: readonly Run[]): Grid {
  const labels = { x: new Map<number, string>(), y: new Map<number, string>() };
  const cells = new Map<string, Run>();
  for (const run of runs) {
    const at = { x: 0, y: 0 };
    for (const tag of run.tags ?? []) {
      const [, name, position, label] = /^([xy])(\d{1,3}) (.*)$/.exec(tag) ?? [];
      if (name === undefined) continue;
      at[name as "x" | "y"] = Number(position);
      labels[name as "x" | "y"].set(Number(position), label!);
    }
    const place = placeOf(at.x, at.y);
    if (!cells.has(place)) cells.set(place, run);
  }
  return { columns: listed(labels.x), rows: listed(labels.y), cells };
}

export const placeOf = (column: number, row: number): string => `${column} ${row}`;

function listed(labels: ReadonlyMap<number, string>): string[] {
  const length = Math.max(0, ...labels.keys()) + 1;
  return Array.from({ length }, (_, i) => labels.get(i) ?? "");
}
