import { describe, LatentkitError } from "../../../base/errors.js";
import type { ControlNet } from "../../types.js";
import { type ModelHeader, PartShapes } from "../recognition/part.js";
import { type Adapter, fileStateKey, ModelPart } from "../session/model-part.js";
import { floatsOf, listedNetwork, type Network, type WeightChange } from "../weights/network.js";
import {
  quotedName,
  type StoredWeight,
  unsupported,
  valuesIn,
  type WeightFile,
  type WeightMap,
} from "../weights/stored.js";
import type { UnetConfig } from "./build.js";
import { buildControlNet, type ControlNetConfig, ROOTS } from "./control.js";

/** Weights of a Control-LoRA: those that it has whole, and factors of changes to those of a UNet. */
export interface ControlLoraPart {
  readonly whole: WeightMap;
  /** By the key of the weight that their product is added to. */
  readonly changes: ReadonlyMap<string, { readonly up: StoredWeight; readonly down: StoredWeight }>;
  /** Whether it is for UNets that take a label, as SDXL's do. */
  readonly isSdxl: boolean;
}

const EXPECTED = "a Control-LoRA";
export const CONTROL_LORA_MARK = "lora_controlnet";
const LABEL = "label_emb.";
/** Layers that no UNet has. */
const OWN_LAYERS = ["zero_convs.0.0.weight", "input_hint_block.0.weight", "middle_block_out.0.weight"];

/** The weights of a Control-LoRA. Throws model.invalid and model.unsupported. */
export function controlLoraPart(file: ModelHeader): ControlLoraPart {
  const shapes = new PartShapes(file, file.weights, (key) => key);
  for (const key of OWN_LAYERS) shapes.sides(key, 4);
  const listAll = (network: Network): void => {
    for (const [key, { shape }] of file.weights) if (key !== CONTROL_LORA_MARK) network.weight(key, shape);
  };
  shapes.check(listAll, ROOTS, EXPECTED);
  const whole = new Map<string, StoredWeight>();
  const changes = new Map<string, { up: StoredWeight; down: StoredWeight }>();
  for (const [key, weight] of file.weights) {
    if (key === CONTROL_LORA_MARK || key.endsWith(".down")) continue;
    if (!ROOTS.some((root) => key.startsWith(root)))
      throw unsupported(file.name, EXPECTED, `one with the unknown weight ${quotedName(key)}`);
    if (!key.endsWith(".up")) {
      whole.set(key, weight);
      continue;
    }
    const layer = key.slice(0, -".up".length);
    const down = file.weights.get(`${layer}.down`);
    const [rank] = down?.shape ?? [];
    if (
      down === undefined ||
      weight.shape[1] !== rank ||
      valuesIn(weight.shape) !== (weight.shape[0] ?? 0) * (rank ?? 0)
    )
      throw shapes.invalid(
        `${quotedName(key)} and the "down" beside it of one rank`,
        `${describe(weight.shape)} and ${describe(down?.shape)}`,
      );
    changes.set(`${layer}.weight`, { up: weight, down });
  }
  const isSdxl = [...file.weights.keys()].some((key) => key.startsWith(LABEL));
  return { whole, changes, isSdxl };
}

/** A Control-LoRA of a file, which makes a ControlNet of the UNet that it is used with. */
export class CheckpointControlLora implements ControlNet {
  readonly label: string;
  readonly #file: WeightFile;
  readonly #lora: ControlLoraPart;

  constructor(file: WeightFile, lora: ControlLoraPart) {
    this.label = `ControlNet of ${file.name}`;
    this.#file = file;
    this.#lora = lora;
  }

  /** The net itself: it has one kind of picture. */
  ofType(): ControlNet {
    return this;
  }

  /** The ControlNet over the weights of a UNet, its LoRAs included. Throws value.invalid if they do not fit. */
  on(unet: ModelPart<UnetConfig>): ModelPart<ControlNetConfig> {
    const { whole, changes } = this.#lora;
    const network = listedNetwork();
    buildControlNet(network, unet.config);
    const weights = new Map<string, StoredWeight>();
    for (const [key, shape] of network.listed) {
      const stored = whole.get(key) ?? unet.weights.get(key);
      const change = changes.get(key);
      const isFit =
        stored !== undefined && sameSides(stored.shape, shape) && (change === undefined || fits(change, shape));
      if (!isFit)
        throw new LatentkitError("value.invalid", `${this.label} is for a different model family than ${unet.label}.`);
      weights.set(key, stored);
    }
    const loras = unet.adapters.map((adapter) => ({
      ...adapter,
      changes: new Map([...adapter.changes].filter(([key]) => weights.has(key) && !whole.has(key))),
    }));
    return new ModelPart<ControlNetConfig>(this.label, unet.file, unet.config, weights, [...loras, this.#adapter()]);
  }

  #adapter(): Adapter {
    const all = new Map<string, readonly WeightChange[]>();
    for (const [key, { up, down }] of this.#lora.changes) all.set(key, [productOf(up, down)]);
    return { key: `control ${fileStateKey(this.#file)}`, file: this.#file, changes: all };
  }
}

/** Adds up · down, as matrices, to a weight. */
function productOf(up: StoredWeight, down: StoredWeight): WeightChange {
  return (graph, weight, shape) => {
    const matrix = (stored: StoredWeight, rows: number) =>
      graph.node("Reshape", [floatsOf(graph, stored), graph.ints([rows, -1])]);
    const product = graph.node("MatMul", [matrix(up, up.shape[0]!), matrix(down, down.shape[0]!)]);
    return graph.node("Add", [weight, graph.node("Reshape", [product, graph.ints(shape)])]);
  };
}

const sameSides = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((side, axis) => side === b[axis]);

/** Whether the product of two factors has the values of a shape. */
const fits = ({ up, down }: { up: StoredWeight; down: StoredWeight }, shape: readonly number[]): boolean =>
  up.shape[0] === shape[0] && valuesIn(down.shape) / down.shape[0]! === valuesIn(shape) / shape[0]!;
