import { cos } from "../../native/elementary.js";

/** Highest number of cosine waves along a side that the preview model tells apart. */
const MOST_WAVES = 16;

/** Orthonormal cosine waves (DCT-II) along a side of n cells: wave u at cell i is waves[u * n + i]. */
export interface Waves {
  readonly cells: number;
  readonly count: number;
  readonly values: Float64Array;
}

export function wavesOf(cells: number): Waves {
  const count = Math.min(MOST_WAVES, cells);
  const values = new Float64Array(count * cells);
  for (let u = 0; u < count; u++) {
    const scale = Math.sqrt((u === 0 ? 1 : 2) / cells);
    for (let i = 0; i < cells; i++) values[u * cells + i] = scale * cos((Math.PI * (2 * i + 1) * u) / (2 * cells));
  }
  return { cells, count, values };
}

/** Amplitudes [v, u] of the waves in one plane [rows, columns], which starts at `from`. */
export function analyse(plane: Float32Array | Float64Array, from: number, down: Waves, across: Waves): Float64Array {
  const rows = new Float64Array(down.cells * across.count);
  for (let y = 0; y < down.cells; y++) {
    for (let u = 0; u < across.count; u++) {
      let sum = 0;
      for (let x = 0; x < across.cells; x++) {
        sum += plane[from + y * across.cells + x]! * across.values[u * across.cells + x]!;
      }
      rows[y * across.count + u] = sum;
    }
  }
  const out = new Float64Array(down.count * across.count);
  for (let v = 0; v < down.count; v++) {
    for (let y = 0; y < down.cells; y++) {
      const wave = down.values[v * down.cells + y]!;
      for (let u = 0; u < across.count; u++) out[v * across.count + u]! += wave * rows[y * across.count + u]!;
    }
  }
  return out;
}

/** Adds the waves of these amplitudes to a plane: the inverse of `analyse` where it has all waves. */
export function synthesise(
  amplitudes: Float64Array,
  plane: Float32Array | Float64Array,
  from: number,
  down: Waves,
  across: Waves,
): void {
  const rows = new Float64Array(down.cells * across.count);
  for (let v = 0; v < down.count; v++) {
    for (let y = 0; y < down.cells; y++) {
      const wave = down.values[v * down.cells + y]!;
      for (let u = 0; u < across.count; u++) rows[y * across.count + u]! += wave * amplitudes[v * across.count + u]!;
    }
  }
  for (let y = 0; y < down.cells; y++) {
    for (let x = 0; x < across.cells; x++) {
      let sum = 0;
      for (let u = 0; u < across.count; u++) {
        sum += rows[y * across.count + u]! * across.values[u * across.cells + x]!;
      }
      plane[from + y * across.cells + x]! += sum;
    }
  }
}
