import type { InjectOptions, PhiloxDraw, TensorOperations } from "./bindings.js";
import type { CudaBindings, CudaHandle, CudaMemory } from "./cuda-bindings.js";
import { loadNative } from "./load.js";

/** Where a case computes: the native core's arrays, or memory of a device. */
export interface Side<M> {
  readonly ops: TensorOperations<M, M>;
  /** New memory with these values. */
  put(values: Float32Array | Uint8Array): M;
  floats(memory: M, count: number): Float32Array;
  bytes(memory: M, count: number): Uint8Array;
  /** maskedBlend with a mask of another size. */
  resizedBlend(out: M, a: M, b: M, mask: M, shape: Four, maskShape: Three): void;
  /** injectNoise that mixes what is drawn; `count` values. */
  injectDrawn(out: M, base: M, noise: M, options: InjectOptions<M>, count: number, draw: PhiloxDraw): void;
  /** Memory that is filled and written over from element `at` on. */
  patched(count: number, value: number, values: Float32Array, at: number): M;
  /** A picture of floats as a PNG file. */
  encode(images: M, index: number, width: number, height: number, channels: number): Promise<Uint8Array>;
}

type Three = readonly [number, number, number];
type Four = readonly [number, number, number, number];
type Answer = Float32Array | Uint8Array | number | bigint;

/** One operation on one set of operands; answers everything that it computed. */
export interface TrialCase {
  readonly name: string;
  run<M>(side: Side<M>): Answer | Promise<Answer>;
}

const LEVEL = 4;
/** One, a few, one more than a warp, a block and a leaf of the sums have. */
const COUNTS = [1, 3, 33, 257, 4097, 70_001];
const ODD = [0, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e-40, -3e38, 1, 0.5 / 255];

/** Values of both signs and many sizes, the same in every process; some of them odd ones. */
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

/** What the operation writes over. */
const room = (count: number): Float32Array => new Float32Array(count).fill(7);

const size = (shape: readonly number[]): number => shape.reduce((product, side) => product * side, 1);

/** A case whose only answer are `count` floats that `write` leaves in `out`. */
function floatsOf(name: string, count: number, write: <M>(side: Side<M>, out: M) => void): TrialCase {
  return {
    name,
    run(side) {
      const out = side.put(room(count));
      write(side, out);
      return side.floats(out, count);
    },
  };
}

const elementwise = COUNTS.flatMap((n) => [
  floatsOf(`scale of ${n}`, n, ({ ops, put }, out) => ops.scale(out, put(values(n, 1)), 0.18215)),
  floatsOf(`axpy of ${n}`, n, ({ ops, put }, out) => ops.axpy(out, put(values(n, 2)), put(values(n, 3)), 0.7)),
  floatsOf(`average of ${n}`, n, ({ ops, put }, out) => ops.average(out, put(values(n, 4)), put(values(n, 5)))),
  floatsOf(`lerp of ${n}`, n, ({ ops, put }, out) => ops.lerp(out, put(values(n, 6)), put(values(n, 7)), 0.3)),
  { name: `std of ${n}`, run: <M>({ ops, put }: Side<M>) => ops.std(put(values(n, 8, false))) },
]);

const SEEDS = [0n, 42n, 2n ** 64n - 1n];

const noise = [1, 5, 1023, 40_001].flatMap((n) =>
  SEEDS.flatMap((seed, at): TrialCase[] => {
    const threads = [256, 1024, 270_336][at]!;
    const k = [1, 14.6146, -0.3][at]!;
    const offset = BigInt(at) * 8n;
    const name = `philoxRandn of ${n}, seed ${seed}`;
    const next = { name, run: <M>({ ops, put }: Side<M>) => ops.philoxRandn(put(room(n)), seed, offset, threads, k) };
    return [next, floatsOf(name, n, ({ ops }, out) => void ops.philoxRandn(out, seed, offset, threads, k))];
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

const planes = SHAPES.flatMap((shape): TrialCase[] => {
  const [batch, channels, height, width] = shape;
  const n = size(shape);
  const plane = height * width;
  const mask = unit(batch * plane, 10);
  const small = unit(6, 11);
  return [
    floatsOf(`maskedBlend ${shape}`, n, ({ ops, put }, out) =>
      ops.maskedBlend(out, put(values(n, 12)), put(values(n, 13)), put(mask), batch, channels, plane, batch),
    ),
    floatsOf(`resizedBlend ${shape}`, n, ({ put, resizedBlend }, out) =>
      resizedBlend(out, put(values(n, 12)), put(values(n, 13)), put(small), shape, [1, 2, 3]),
    ),
    ...[-1, 0, 2].map((place) => pasted(shape, place)),
  ];
});

/** A source of 3 x 4 pasted, once as it is and once through a mask. */
function pasted(shape: Four, place: number): TrialCase {
  const source: Four = [1, shape[1], 3, 4];
  return {
    name: `composite ${shape} at ${place}`,
    run({ ops, put, floats }) {
      const [plain, masked] = [put(values(size(shape), 14)), put(values(size(shape), 15))];
      const from = put(values(size(source), 16));
      ops.composite(plain, shape, from, source, place, place);
      ops.composite(masked, shape, from, source, place, -place, put(unit(12, 17)), 1);
      return Float32Array.from([...floats(plain, size(shape)), ...floats(masked, size(shape))]);
    },
  };
}

/** Which of injectNoise's settings are on. */
const INJECTIONS = [0, 1, 2, 3, 4, 5, 6, 7];

function injection<M>({ put }: Side<M>, shape: Four, bits: number): InjectOptions<M> {
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

const pictures = [1, 3, 4].flatMap((channels): TrialCase[] => {
  const pixels = 33 * 17;
  const image = values(2 * pixels * channels, 22);
  return [
    floatsOf(`channelToMask of ${channels}`, 2 * pixels, ({ ops, put }, out) =>
      ops.channelToMask(out, put(image), channels, 2),
    ),
    {
      name: `floatToByte of ${channels}`,
      run({ ops, put, bytes }) {
        const out = put(new Uint8Array(image.length));
        ops.floatToByte(out, put(image));
        return bytes(out, image.length);
      },
    },
    floatsOf(`byteToFloat of ${channels}`, image.length, ({ ops, put }, out) =>
      ops.byteToFloat(out, put(Uint8Array.from(image, (_, i) => i * 7))),
    ),
    { name: `PNG of ${channels}`, run: ({ encode, put }) => encode(put(image), 1, 17, 33, channels) },
  ];
});

const toImage = floatsOf("planesToImage", 2 * 3 * 77, ({ ops, put }, out) =>
  ops.planesToImage(out, put(values(2 * 3 * 77, 23)), 2),
);

const patched: TrialCase = {
  name: "fill and copy",
  run: (side) => side.floats(side.patched(1001, 0.1, values(300, 24), 500), 1001),
};

/** Every operation of a device, on small and odd shapes. */
export const CASES: readonly TrialCase[] = [
  ...elementwise,
  ...noise,
  ...resized,
  ...planes,
  ...injected,
  ...pictures,
  toImage,
  patched,
];

/** Arrays of the native core: its operations tell floats from bytes themselves. */
export type HostMemory = Float32Array | Uint8Array;

const floatsIn = (memory: HostMemory): Float32Array => memory as Float32Array;

/** The native core. */
export const HOST_SIDE: Side<HostMemory> = {
  get ops() {
    return loadNative() as unknown as TensorOperations<HostMemory, HostMemory>;
  },
  put: (given) => given.slice(),
  floats: floatsIn,
  bytes: (memory) => memory as Uint8Array,
  resizedBlend(out, a, b, mask, shape, [batch, height, width]) {
    const native = loadNative();
    const [items, channels, toHeight, toWidth] = shape;
    const sized = new Float32Array(batch * toHeight * toWidth);
    native.resizeBilinear(sized, floatsIn(mask), batch, height, width, toHeight, toWidth);
    const operands = [floatsIn(out), floatsIn(a), floatsIn(b), sized] as const;
    native.maskedBlend(...operands, items, channels, toHeight * toWidth, batch);
  },
  injectDrawn(out, base, noise, options, count, { seed, offset, threads, k }) {
    const native = loadNative();
    const random = new Float32Array(count);
    native.philoxRandn(random, seed, offset, threads, k);
    const given = { ...options, mask: options.mask && floatsIn(options.mask), random };
    native.injectNoise(floatsIn(out), floatsIn(base), floatsIn(noise), given);
  },
  patched(count, value, given, at) {
    const memory = new Float32Array(count).fill(value);
    memory.set(given, at);
    return memory;
  },
  encode(images, index, width, height, channels) {
    const count = width * height * channels;
    const picture = floatsIn(images).subarray(index * count, (index + 1) * count);
    return loadNative().encodePng(picture, width, height, channels, LEVEL, []);
  },
};

/** A device. */
export function cudaSide(cuda: CudaBindings, handle: CudaHandle): Side<CudaMemory> {
  const read = <T extends Float32Array | Uint8Array>(out: T, memory: CudaMemory): T => {
    cuda.download(out, memory);
    return out;
  };
  const put = (given: Float32Array | Uint8Array): CudaMemory => {
    const memory = cuda.take(handle, given.byteLength);
    cuda.upload(memory, given);
    return memory;
  };
  return {
    ops: cuda,
    put,
    patched(count, value, given, at) {
      const memory = put(room(count));
      cuda.fill(memory, value);
      cuda.copy(memory, put(given), at * given.BYTES_PER_ELEMENT);
      return memory;
    },
    floats: (memory, count) => read(new Float32Array(count), memory),
    bytes: (memory, count) => read(new Uint8Array(count), memory),
    resizedBlend: (...given) => cuda.resizedBlend(...given),
    injectDrawn: (out, base, noise, options, _, drawn) =>
      cuda.injectNoise(out, base, noise, { ...options, random: undefined, drawn }),
    async encode(images, index, width, height, channels) {
      const { rows } = await cuda.filterPng(images, index, width, height, channels);
      return loadNative().deflatePng(rows, width, height, channels, LEVEL, []);
    },
  };
}

const shown = (value: unknown): string => (Object.is(value, -0) ? "-0" : String(value));

/** Where two answers differ, bit for bit but for the bits of a NaN; undefined where they do not. */
export function differs(expected: Answer, found: Answer): string | undefined {
  if (typeof expected !== "object" || typeof found !== "object") {
    return Object.is(expected, found) ? undefined : `${found} instead of ${expected}`;
  }
  if (expected.length !== found.length) return `${found.length} values instead of ${expected.length}`;
  for (let i = 0; i < expected.length; i++) {
    if (!Object.is(expected[i], found[i])) return `value ${i} is ${shown(found[i])} instead of ${shown(expected[i])}`;
  }
  return undefined;
}
