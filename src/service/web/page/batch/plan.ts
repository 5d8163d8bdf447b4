import { useState } from "preact/hooks";
import type { Parameter, Run } from "../api.ts";
import { type Axis, axesOf, type FormValues, runsOf, singleValues, type Values } from "../parts/form.tsx";
import { goTo } from "../parts/route.ts";

// A batch is its tags, so it needs no table and survives the tab; the newest run at a place counts.
/** Most runs that one batch starts: as many again fit the page of a list when it is resumed. */
const MOST_RUNS = 100;
/** Characters of a tag. */
const TAG_CHARACTERS = 64;
const PREFIX = "batch ";
/** Beginning of a tag that says where a run stands on an axis. */
const PLACE = /^[xy]\d+ /;

/** A run before it is started. */
export interface PlannedRun {
  readonly values: Values;
  /** Its place in a batch in words; "" if it is alone. */
  readonly name: string;
  readonly tags: readonly string[];
}

/** Values of a run on some axes. */
interface Place {
  readonly values: Values;
  readonly label: string;
}

/**
 * Runs of all combinations of the axes, with the tags by which the batch is found and laid out again: the values of the
 * first axis are columns, those of all others rows. A single run has no tags.
 */
function planRuns(id: string, values: Values, [first, ...others]: readonly Axis[]): PlannedRun[] {
  const columns = placesOn(first === undefined ? [] : [first]);
  const rows = placesOn(others);
  if (columns.length * rows.length === 1)
    return [{ values: { ...values, ...columns[0]!.values, ...rows[0]!.values }, name: "", tags: [] }];
  return rows.flatMap((down, row) =>
    columns.map((across, column) => ({
      values: { ...values, ...across.values, ...down.values },
      ...namesOf(id, [...tagOf("x", column, across), ...tagOf("y", row, down)]),
    })),
  );
}

/** Combinations of the values of axes, the last of which changes fastest; one without values if there is no axis. */
function placesOn(axes: readonly Axis[]): Place[] {
  return axes.reduce<Place[]>(
    (places, { key, title, values }) =>
      places.flatMap((place) =>
        values.map((value) => ({
          values: { ...place.values, [key]: value },
          label: `${place.label === "" ? "" : `${place.label}, `}${title}: ${value}`,
        })),
      ),
    [{ values: {}, label: "" }],
  );
}

const namesOf = (id: string, places: readonly string[]) => ({
  name: places.map((tag) => tag.replace(PLACE, "")).join(", "),
  tags: [batchTag(id), ...places],
});

export const batchTag = (id: string): string => `${PREFIX}${id}`;

/** Id of the batch of a run; undefined if it has none. */
export const batchOf = (tags: readonly string[]): string | undefined =>
  tags.find((tag) => tag.startsWith(PREFIX))?.slice(PREFIX.length);

function tagOf(name: string, position: number, { label }: Place): string[] {
  if (label === "") return [];
  // only a text of one line without halves of characters can be a tag
  const tag = `${name}${position} ${label}`.replace(/[\p{Cc}\p{Cs}]/gu, " ").slice(0, TAG_CHARACTERS);
  return [tag.replace(/[\uD800-\uDBFF]$/, "")];
}

/** A batch as its runs tell it. */
export interface Grid {
  /** Labels of the columns and rows; [""] without such an axis. */
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

export interface Starter {
  /** Starts what a form says, and goes there. */
  start(form: FormValues, parameters: readonly Parameter[]): Promise<void>;
  readonly error: Error | undefined;
  readonly isSending: boolean;
  /** How many of several runs are started. */
  readonly progress: string | undefined;
}

/**
 * Starts the run of a form, or those of all combinations of its values, one after the other, so that they wait in their
 * order. `send` returns the id of the run; its key is the same for a run whose response was lost. The runs before a
 * refused one are started.
 */
export function useStarter(send: (run: PlannedRun, key: string) => Promise<string>): Starter {
  const [error, setError] = useState<Error>();
  const [isSending, setSending] = useState(false);
  const [progress, setProgress] = useState<string>();
  const start = async (form: FormValues, parameters: readonly Parameter[]) => {
    setSending(true);
    setError(undefined);
    try {
      const count = runsOf(form, parameters);
      if (count > MOST_RUNS)
        throw new Error(`A batch can have at most ${MOST_RUNS} runs; this one would have ${count}.`);
      const id = crypto.getRandomValues(new Uint32Array(1))[0]!.toString(16).padStart(8, "0");
      let runId = "";
      for (const [index, run] of planRuns(id, singleValues(form, parameters), axesOf(form, parameters)).entries()) {
        runId = await send(run, `batch-${id}-${index}`);
        if (count > 1) setProgress(`${index + 1} of ${count} started`);
      }
      if (count === 1) goTo("runs", runId);
      else goTo("batch", id);
    } catch (problem) {
      setError(problem as Error);
    } finally {
      setSending(false);
    }
  };
  return { start, error, isSending, progress };
}
