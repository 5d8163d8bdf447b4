/** Ways to spread a weight over the transformers of a model: those of the pack, in its order. */
export const WEIGHT_TYPES = [
  "linear",
  "ease in",
  "ease out",
  "ease in-out",
  "reverse in-out",
  "weak input",
  "weak output",
  "weak middle",
  "strong middle",
  "style transfer",
  "composition",
  "strong style transfer",
  "style and composition",
  "style transfer precise",
  "composition precise",
] as const;

export type WeightType = (typeof WEIGHT_TYPES)[number];

/** Transformers of a family by their index in the order input, middle, output. */
interface Layers {
  readonly count: number;
  readonly middle: number;
  readonly style: readonly number[];
  /** With the share of a weight that they get. */
  readonly composition: ReadonlyMap<number, number>;
}

const SD1: Layers = {
  count: 16,
  middle: 6,
  style: [0, 1, 2, 3, 9, 10, 11, 12, 13, 14, 15],
  composition: new Map([
    [4, 0.25],
    [5, 1],
  ]),
};
const SDXL: Layers = { count: 11, middle: 4, style: [6], composition: new Map([[3, 1]]) };

const layersOf = (isSdxl: boolean): Layers => (isSdxl ? SDXL : SD1);

/** Share of a weight at the ends of a slope, and in what is weak. */
const LEAST_SLOPE = 0.05;
const WEAK = 0.2;
/** Share of the boost that precise composition has outside of style and composition. */
const OTHERS = 0.1;

/** Weights at each transformer: of pictures as usual, and of those whose sides are swapped. */
export interface LayerWeights {
  readonly plain: readonly number[];
  readonly swapped: readonly number[];
}

/** Weights of styles and compositions beside the weight itself. */
export interface OtherWeights {
  /** Weight at the places of composition in "style and composition"; 1 by default. */
  readonly composition?: number;
  /** Weight at the swapped places of composition, or of style; the weight itself by default. */
  readonly boost?: number;
}

/** The weights at all transformers of a family, 16 of Stable Diffusion 1 or 11 of SDXL. */
export function layerWeights(
  type: WeightType,
  weight: number,
  isSdxl: boolean,
  { composition: ofComposition = 1, boost = weight }: OtherWeights = {},
): LayerWeights {
  const layers = layersOf(isSdxl);
  const { style, composition } = layers;
  const at = (value: (index: number) => number): number[] =>
    Array.from({ length: layers.count }, (_, index) => value(index));
  const none = at(() => 0);
  const share = (index: number): number => composition.get(index) ?? 0;
  const isStyle = (index: number): boolean => style.includes(index);
  const styled = (index: number): number => (isStyle(index) ? weight : 0);
  switch (type) {
    case "style transfer":
      return { plain: at(styled), swapped: none };
    case "composition":
      return { plain: at((index) => weight * share(index)), swapped: none };
    case "strong style transfer":
      return { plain: at((index) => (composition.has(index) ? 0 : weight)), swapped: none };
    case "style and composition":
      return { plain: at((index) => styled(index) + ofComposition * share(index)), swapped: none };
    case "style transfer precise":
      return { plain: at(styled), swapped: at((index) => boost * share(index)) };
    case "composition precise":
      return {
        plain: at((index) => weight * share(index)),
        swapped: at((index) => (composition.has(index) ? 0 : isStyle(index) ? boost : OTHERS * boost)),
      };
    default:
      return { plain: at((index) => weight * factorAt(type, index, layers)), swapped: none };
  }
}

type Slope = Exclude<
  WeightType,
  | "style transfer"
  | "composition"
  | "strong style transfer"
  | "style and composition"
  | "style transfer precise"
  | "composition precise"
>;

function factorAt(type: Slope, index: number, { count, middle }: Layers): number {
  const slope = (share: number): number => LEAST_SLOPE + (1 - LEAST_SLOPE) * share;
  const fromMiddle = Math.abs(index - count / 2) / (count / 2);
  switch (type) {
    case "linear":
      return 1;
    case "ease in":
      return slope(1 - index / count);
    case "ease out":
      return slope(index / count);
    case "ease in-out":
      return slope(1 - fromMiddle);
    case "reverse in-out":
      return slope(fromMiddle);
    case "weak input":
      return index < middle ? WEAK : 1;
    case "weak output":
      return index > middle ? WEAK : 1;
    case "weak middle":
      return index === middle ? WEAK : 1;
    case "strong middle":
      return index === middle ? 1 : WEAK;
  }
}

/** A number for each transformer: the weight times the text's entries "index:number", separated by commas; others are 0. Undefined for another text. */
export function listedWeights(text: string, weight: number, isSdxl: boolean): LayerWeights | undefined {
  const { count } = layersOf(isSdxl);
  const plain = new Array<number>(count).fill(0);
  for (const entry of text.split(",")) {
    const match = /^\s*(\d{1,3})\s*:\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*$/.exec(entry);
    const index = Number(match?.[1]);
    if (match === null || !(index < count)) return undefined;
    plain[index] = weight * Number(match[2]);
  }
  return { plain, swapped: new Array<number>(count).fill(0) };
}
