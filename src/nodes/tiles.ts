import type { Region } from "../tensor/parts.js";

/** A tile along one axis, in values of the source, with weights for each value of the target. */
export interface Span {
  readonly from: number;
  readonly count: number;
  /** Add up to 1 everywhere with those of the other tiles. */
  readonly weights: Float64Array;
}

export interface Tile {
  readonly down: Span;
  readonly across: Span;
}

/** Sides of the target of tiles: [planes, height, width, values] in values, and target values for one of the source. */
export interface TileLayout {
  readonly planes: number;
  readonly height: number;
  readonly width: number;
  readonly values: number;
  readonly scale: number;
}

/**
 * Tiles of at most `size` of rows x columns values. They share `overlap` with their neighbours, the last ones more; there
 * their weights rise and fall linearly. `scale` is the number of weights for a value.
 */
export function tilesOf(rows: number, columns: number, size: number, overlap: number, scale: number): Tile[] {
  const across = spansOf(columns, size, overlap, scale);
  return spansOf(rows, size, overlap, scale).flatMap((down) => across.map((span) => ({ down, across: span })));
}

function spansOf(length: number, size: number, overlap: number, scale: number): Span[] {
  const count = Math.min(size, length);
  const steps = Math.max(0, Math.ceil((length - size) / (size - overlap)));
  const starts = Array.from({ length: steps + 1 }, (_, step) => Math.min(step * (size - overlap), length - count));
  const feather = Math.max(1, overlap * scale);
  const rise = (at: number) => Math.min(1, (at + 1) / feather, (count * scale - at) / feather);
  const sums = new Float64Array(length * scale);
  for (const from of starts) for (let at = 0; at < count * scale; at++) sums[from * scale + at]! += rise(at);
  return starts.map((from) => ({
    from,
    count,
    weights: Float64Array.from({ length: count * scale }, (_, at) => rise(at) / sums[from * scale + at]!),
  }));
}

/** The tile in its source, whose values have `cell` pixels. */
export const regionOf = ({ down, across }: Tile, cell = 1): Region => ({
  top: down.from * cell,
  left: across.from * cell,
  height: down.count * cell,
  width: across.count * cell,
});

/** Adds a tile times its weights to zeros; values that no other tile has are copied. */
export function addTile(into: Float32Array, tile: Float32Array, { down, across }: Tile, layout: TileLayout): void {
  const { planes, height, width, values, scale } = layout;
  const shares = across.weights;
  const columns = shares.length;
  const [first, last] = [shares.indexOf(1), shares.lastIndexOf(1) + 1];
  for (let row = 0; row < planes * down.weights.length; row++) {
    const [plane, line] = [Math.floor(row / down.weights.length), row % down.weights.length];
    const from = row * columns * values;
    const to = ((plane * height + down.from * scale + line) * width + across.from * scale) * values;
    const weight = down.weights[line]!;
    const add = (start: number, end: number): void => {
      for (let column = start, at = start * values; column < end; column++) {
        const share = weight * shares[column]!;
        for (let value = 0; value < values; value++, at++) into[to + at]! += tile[from + at]! * share;
      }
    };
    if (weight !== 1 || first < 0) {
      add(0, columns);
      continue;
    }
    into.set(tile.subarray(from + first * values, from + last * values), to + first * values);
    add(0, first);
    add(last, columns);
  }
}
