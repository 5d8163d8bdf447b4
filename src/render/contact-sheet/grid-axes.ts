import { createHash } from "node:crypto";
import { printJson } from "../../io/json/lossless.js";
import type { ItemValues } from "../items/item.js";
import { inWords } from "./canvas.js";
import type { SheetItem } from "./contact-sheet.js";

/** Keys of the items whose values are a grid's rows, columns and pages. */
export interface GridAxes {
  readonly rows: string;
  /** One column if absent. */
  readonly columns?: string;
  /** One page if absent. */
  readonly pages?: string;
}

/** Content of a cell: a picture's path, and how many more belong there. */
export interface GridCell {
  readonly picture: string | "failed" | undefined;
  readonly more: number;
}

/** One axis as a page shows it: its short name and a label for each value, in the order of the items. */
export interface GridAxis {
  readonly name: string;
  readonly labels: readonly string[];
  /** Number of values left out. */
  readonly hidden: number;
}

/** The cells of all pages. */
export interface GridTable {
  readonly axes: { readonly rows: GridAxis; readonly columns?: GridAxis; readonly pages?: GridAxis };
  /** Undefined if the item was not rendered. An axis that the grid does not have counts as 0. */
  cell(at: Readonly<Record<keyof GridAxes, number>>): GridCell | undefined;
}

/** Values that an axis shows. */
const MAX_VALUES = 200;
/** Further values are only counted, and cells left out. */
const MAX_SEEN = 10_000;
const MAX_CELLS = 250_000;
/** Longer values are compared by their hash. */
const MAX_TEXT = 100;

const KINDS = ["rows", "columns", "pages"] as const;

interface SeenValue {
  readonly id: number;
  readonly label: string;
  /** Number of the first item that has it. */
  first: number;
}

interface SeenCell {
  index: number;
  picture: string | "failed" | undefined;
  more: number;
}

/** Collects items in any order into cells by the values of their axes; `redacted` hides values from labels. */
export class GridItems {
  readonly #seen: Map<string, SeenValue>[];
  readonly #kinds: readonly (keyof GridAxes)[];
  readonly #cells = new Map<string, SeenCell>();
  readonly #axes: GridAxes;
  readonly #redacted: (values: ItemValues) => ItemValues;

  constructor(axes: GridAxes, redacted: (values: ItemValues) => ItemValues) {
    this.#axes = axes;
    this.#redacted = redacted;
    this.#kinds = KINDS.filter((kind) => axes[kind] !== undefined);
    this.#seen = this.#kinds.map(() => new Map());
  }

  add({ index, values, pictures, isFailed = false }: SheetItem): void {
    const shown = this.#redacted(values);
    const ids = this.#kinds.map((kind, axis) => {
      const key = this.#axes[kind]!;
      return this.#idOf(this.#seen[axis]!, values[key], shown[key], index);
    });
    if (ids.includes(undefined)) return;
    const place = ids.join(" ");
    const picture = isFailed ? "failed" : pictures[0];
    const cell = this.#cells.get(place);
    if (cell === undefined) {
      if (this.#cells.size < MAX_CELLS)
        this.#cells.set(place, { index, picture, more: Math.max(0, pictures.length - 1) });
      return;
    }
    // several items of the same values: the first one is in front
    cell.more += Math.max(1, pictures.length);
    if (index < cell.index) Object.assign(cell, { index, picture });
  }

  /** The table of the added items; undefined without any. */
  table(): GridTable | undefined {
    if (this.#cells.size === 0) return undefined;
    const sorted = this.#seen.map((values) => [...values.values()].sort((a, b) => a.first - b.first));
    const keys = this.#kinds.map((kind) => this.#axes[kind]!);
    const named = this.#kinds.map((kind, i) => [kind, axisOf(shortName(keys[i]!, keys), sorted[i]!)] as const);
    return {
      axes: Object.fromEntries(named) as unknown as GridTable["axes"],
      cell: (at) => this.#cells.get(this.#kinds.map((kind, i) => sorted[i]![at[kind]]!.id).join(" ")),
    };
  }

  #idOf(values: Map<string, SeenValue>, value: unknown, shown: unknown, index: number): number | undefined {
    const text = value === undefined ? "" : printJson(value);
    const key = text.length <= MAX_TEXT ? text : createHash("sha256").update(text).digest("base64");
    const seen = values.get(key);
    if (seen !== undefined) {
      seen.first = Math.min(seen.first, index);
      return seen.id;
    }
    if (values.size >= MAX_SEEN) return undefined;
    const id = values.size;
    values.set(key, { id, label: value === undefined ? "not set" : inWords(shown), first: index });
    return id;
  }
}

function axisOf(name: string, values: readonly SeenValue[]): GridAxis {
  const labels = values.slice(0, MAX_VALUES).map(({ label }) => label);
  return { name, labels, hidden: values.length - labels.length };
}

/** The name of the input, unless another axis has the same. */
function shortName(key: string, keys: readonly string[]): string {
  const nameOf = (key: string) => key.slice(key.lastIndexOf(".") + 1);
  return keys.every((other) => other === key || nameOf(other) !== nameOf(key)) ? nameOf(key) : key;
}
