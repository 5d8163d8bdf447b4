import { pow } from "../elementary.js";
import type { CudaBindings, Four, InjectOptions } from "../tensor-operations.js";
import type { TrialSide } from "./trial-sides.js";

type Result = Float32Array | Uint8Array | Uint32Array | number | bigint;

/** One operation on one set of operands; `run` returns all that it computed. */
export interface TrialCase {
  readonly name: string;
  run<M>(side: TrialSide<M>): Result | Promise<Result>;
}

/** One, a few, and one more than a warp, a block and a leaf of the sums have. */
const COUNTS = [1, 3, 33, 257, 4097, 70_001];
const ODD = [0, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e-40, -3e38, 1, 0.5 / 255];

/** Values of both signs and many sizes, the same in every process; some of them odd. */
function values(count: number, seed: number, odd = true): Float32Array {
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  return Float32Array.from({ length: count }, (_, i) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    if (odd && i % 29 === 28) return ODD[state % ODD.length]!;
    return (state / 2 ** 31 - 1) * 2 ** ((i % 7) - 3);
  });
}

/** Values in 0 … 1, as masks and pictures have. */
const unit = (count: number, seed: number): Float32Array => values(count, seed, false).map((x) => Math.abs(x) % 1);

/** An output, filled so that a value that is not written shows. */
const room = (count: number): Float32Array => new Float32Array(count).fill(7);

const size = (shape: readonly number[]): number => shape.reduce((product, side) => product * side, 1);

/** A case with one result: `count` floats that `write` leaves in `out`. */
function floatsOf(name: string, count: number, write: <M>(side: TrialSide<M>, out: M) => void): TrialCase {
  return {
    name,
    run(side) {
      const out = side.put(room(count));
      write(side, out);
      return side.floats(out, count);
    },
  };
}

const SEEDS = [0n, 42n, 2n ** 64n - 1n];

const noise = [1, 5, 1023, 40_001].flatMap((n) =>
  SEEDS.flatMap((seed, at): TrialCase[] => {
    const threads = [256, 1024, 270_336][at]!;
    const k = [1, 14.6146, -0.3][at]!;
    const offset = BigInt(at) * 8n;
    const name = `philoxRandn of ${n}, seed ${seed}`;
    const nextOffset = {
      name,
      run: <M>({ ops, put }: TrialSide<M>) => ops.philoxRandn(put(room(n)), seed, offset, threads, k),
    };
    return [nextOffset, floatsOf(name, n, ({ ops }, out) => void ops.philoxRandn(out, seed, offset, threads, k))];
  }),
);

const SIZES = [
  [1, 1, 1, 5, 7],
  [3, 5, 7, 4, 9],
  [2, 16, 16, 33, 17],
  [2, 12, 10, 12, 10],
] as const;

const resized = SIZES.map(([planes, height, width, toHeight, toWidth]) =>
  floatsOf(`resizeBilinear ${height} x ${width}`, planes * toHeight * toWidth, ({ ops, put }, out) =>
    ops.resizeBilinear(out, put(values(planes * height * width, 9)), planes, height, width, toHeight, toWidth),
  ),
);

const SHAPES: readonly Four[] = [
  [1, 1, 1, 1],
  [2, 4, 5, 7],
  [3, 3, 33, 17],
];

const blended = SHAPES.map((shape) => {
  const [batch, channels, height, width] = shape;
  const n = size(shape);
  const plane = height * width;
  const mask = unit(batch * plane, 10);
  return floatsOf(`maskedBlend ${shape}`, n, ({ ops, put }, out) =>
    ops.maskedBlend(out, put(values(n, 12)), put(values(n, 13)), put(mask), batch, channels, plane, batch),
  );
});

const resizedBlends = SHAPES.map((shape) => {
  const n = size(shape);
  const mask = unit(6, 11);
  return floatsOf(`resizedBlend ${shape}`, n, ({ put, resizedBlend }, out) =>
    resizedBlend(out, put(values(n, 12)), put(values(n, 13)), put(mask), shape, [1, 2, 3]),
  );
});

/** A source of 3 x 4 pasted, once as it is and once through a mask. */
function pasted(shape: Four, offset: number): TrialCase {
  const source: Four = [1, shape[1], 3, 4];
  return {
    name: `composite ${shape} at ${offset}`,
    run({ ops, put, floats }) {
      const [plain, masked] = [put(values(size(shape), 14)), put(values(size(shape), 15))];
      const from = put(values(size(source), 16));
      ops.composite(plain, shape, from, source, offset, offset);
      ops.composite(masked, shape, from, source, offset, -offset, put(unit(12, 17)), 1);
      return Float32Array.from([...floats(plain, size(shape)), ...floats(masked, size(shape))]);
    },
  };
}

/** Sets of injectNoise's settings: 1 average, 2 normalize, 4 mix. */
const INJECTIONS = [0, 1, 2, 3, 4, 5, 6, 7];

function injection<M>({ put }: TrialSide<M>, shape: Four, bits: number): InjectOptions<M> {
  return {
    strength: 0.37,
    average: (bits & 1) > 0,
    normalize: (bits & 2) > 0,
    mix: bits & 4 ? 0.6 : 0,
    random: bits & 4 ? put(values(size(shape), 20, false)) : undefined,
    ...(bits % 3 === 0 && { shape, mask: put(unit(6, 21)), maskShape: [1, 2, 3] }),
  };
}

const injected = SHAPES.slice(1).flatMap((shape) => {
  const n = size(shape);
  const [base, added] = [values(n, 18, false), values(n, 19, false)];
  return INJECTIONS.flatMap((bits) => [
    floatsOf(`injectNoise ${shape}, ${bits}`, n, (side, out) =>
      side.ops.injectNoise(out, side.put(base), side.put(added), injection(side, shape, bits)),
    ),
    floatsOf(`injectNoise ${shape}, ${bits}, drawn`, n, (side, out) => {
      const draw = { seed: 3n, offset: 8n, threads: 256, k: bits & 1 ? 1 : 0.7 };
      side.injectDrawn(out, side.put(base), side.put(added), injection(side, shape, bits), n, draw);
    }),
  ]);
});

/** A source of at most 2 x 3 added to the last rows and columns. */
function addedMasked(shape: Four, masks: number): TrialCase {
  const [batch, channels, height, width] = shape;
  const [h, w] = [Math.min(2, height), Math.min(3, width)];
  const area: Four = [height - h, width - w, h, w];
  return {
    name: `addMasked ${shape}, masks: ${masks}`,
    run({ ops, put, floats }) {
      const destination = put(values(size(shape), 25));
      const source = put(values(batch * channels * h * w, 26));
      ops.addMasked(destination, shape, source, area, put(unit(masks * h * w, 27)), masks);
      return floats(destination, size(shape));
    },
  };
}

/** Each number of terms has its own loop. */
const SUMS = [...Array.from({ length: 8 }, (_, at) => [at + 1, 4097] as const), [2, 1], [3, 70_001]] as const;

const summed = SUMS.map(([count, n]) =>
  floatsOf(`weightedSum of ${n}, ${count} terms`, n, ({ ops, put }, out) => {
    const terms = Array.from({ length: count }, (_, k) => [pow(-1.7, k) / 3, put(values(n, 29 + k))]);
    ops.weightedSum(out, ...terms.flat());
  }),
);

const CHANNELS = [1, 3, 4];
const [WIDTH, HEIGHT] = [17, 33];
const picture = (channels: number): Float32Array => values(2 * WIDTH * HEIGHT * channels, 22);

/** Functions that only serve the cases: they open a device and move values. */
type Unjudged = "open" | "architectures" | "memory" | "trim" | "wait" | "take" | "release" | "upload" | "download";

/** Each operation of a device, on small and odd shapes. One without cases does not compile. @internal */
export const CASES_OF: Readonly<Record<Exclude<keyof CudaBindings, Unjudged>, readonly TrialCase[]>> = {
  scale: COUNTS.map((n) =>
    floatsOf(`scale of ${n}`, n, ({ ops, put }, out) => ops.scale(out, put(values(n, 1)), 0.18215)),
  ),
  axpy: COUNTS.map((n) =>
    floatsOf(`axpy of ${n}`, n, ({ ops, put }, out) => ops.axpy(out, put(values(n, 2)), put(values(n, 3)), 0.7)),
  ),
  average: COUNTS.map((n) =>
    floatsOf(`average of ${n}`, n, ({ ops, put }, out) => ops.average(out, put(values(n, 4)), put(values(n, 5)))),
  ),
  lerp: COUNTS.map((n) =>
    floatsOf(`lerp of ${n}`, n, ({ ops, put }, out) => ops.lerp(out, put(values(n, 6)), put(values(n, 7)), 0.3)),
  ),
  std: COUNTS.map((n) => ({ name: `std of ${n}`, run: ({ ops, put }) => ops.std(put(values(n, 8, false))) })),
  weightedSum: summed,
  stdOfItems: COUNTS.map((n) => ({
    name: `stdOfItems of 3 x ${n}`,
    run({ ops, put }) {
      const out = room(3);
      ops.stdOfItems(out, put(values(3 * n, 37, false)));
      return out;
    },
  })),
  scaledError: COUNTS.map((n) => ({
    name: `scaledError of ${n}`,
    run: ({ ops, put }) =>
      ops.scaledError(put(values(n, 38, false)), put(values(n, 39, false)), put(values(n, 40, false)), 0.0078, 0.05),
  })),
  philoxRandn: noise,
  philoxWords: SEEDS.map((seed, at) => ({
    name: `philoxWords, seed ${seed}`,
    run: ({ words }) => words(1021, seed, BigInt(at) * 8n, [256, 1024, 270_336][at]!),
  })),
  resizeBilinear: resized,
  maskedBlend: blended,
  resizedBlend: resizedBlends,
  composite: SHAPES.flatMap((shape) => [-1, 0, 2].map((offset) => pasted(shape, offset))),
  addMasked: SHAPES.flatMap((shape) => [1, shape[0]].map((masks) => addedMasked(shape, masks))),
  injectNoise: injected,
  channelToMask: CHANNELS.map((channels) =>
    floatsOf(`channelToMask of ${channels}`, 2 * WIDTH * HEIGHT, ({ ops, put }, out) =>
      ops.channelToMask(out, put(picture(channels)), channels, 2),
    ),
  ),
  planesToImage: [
    floatsOf("planesToImage", 2 * 3 * 77, ({ ops, put }, out) =>
      ops.planesToImage(out, put(values(2 * 3 * 77, 23)), 2),
    ),
  ],
  floatToByte: CHANNELS.map((channels) => ({
    name: `floatToByte of ${channels}`,
    run({ ops, put, bytes }) {
      const image = picture(channels);
      const out = put(new Uint8Array(image.length));
      ops.floatToByte(out, put(image));
      return bytes(out, image.length);
    },
  })),
  byteToFloat: CHANNELS.map((channels) => {
    const count = 2 * WIDTH * HEIGHT * channels;
    const bytes = Uint8Array.from({ length: count }, (_, i) => i * 7);
    return floatsOf(`byteToFloat of ${channels}`, count, ({ ops, put }, out) => ops.byteToFloat(out, put(bytes)));
  }),
  filterPng: CHANNELS.map((channels) => ({
    name: `filterPng of ${channels}`,
    run: ({ encode, put }) => encode(put(picture(channels)), 1, WIDTH, HEIGHT, channels),
  })),
  fill: [{ name: "fill", run: ({ filled, floats }) => floats(filled(1001, 0.1), 1001) }],
  copy: [
    floatsOf("copy", 1001, ({ put, copy }, out) => copy(out, put(values(300, 24)), 500)),
    floatsOf("copy of a part", 1001, ({ put, copy }, out) => copy(out, put(values(300, 24)), 7, 100, 33)),
  ],
};

export const CASES: readonly TrialCase[] = Object.values(CASES_OF).flat();

const print = (value: unknown): string => (Object.is(value, -0) ? "-0" : String(value));

/** Says where two results differ, bit for bit except in the bits of a NaN; undefined if they are equal. */
export function differs(expected: Result, actual: Result): string | undefined {
  if (typeof expected !== "object" || typeof actual !== "object") {
    return Object.is(expected, actual) ? undefined : `${actual} instead of ${expected}`;
  }
  if (expected.length !== actual.length) return `${actual.length} values instead of ${expected.length}`;
  for (let i = 0; i < expected.length; i++) {
    if (!Object.is(expected[i], actual[i])) return `value ${i} is ${print(actual[i])} instead of ${print(expected[i])}`;
  }
  return undefined;
}
