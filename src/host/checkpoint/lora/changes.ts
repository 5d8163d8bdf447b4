import { LatentkitError } from "../../../base/errors.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import { beginnings } from "../recognition/part.js";
import type { WeightChange, WeightChanges } from "../weights/network.js";
import { quotedName, type StoredWeight } from "../weights/stored.js";
import { type LoraTarget, lengthOf, type Place, placesByName, withChangedRows } from "./places.js";
import type { LoraFile } from "./recognise.js";
import { biasChange, weightChange } from "./weight-change.js";

/** Change of a weight, or of a part of it. */
interface PlacedChange {
  readonly place: Place;
  readonly change: WeightChange;
}

// decisions: LoRAs are merged into the graph
/**
 * Changes that a LoRA makes to the weights of one network, none for strength 0. A layer that the network does not have is
 * left out: see unmatchedModules, and leftOutInputs. Throws model.invalid if a tensor does not fit the weight it is for, or lacks another
 * that belongs to it; model.unsupported for a tensor of a form that is not known: a layer is never changed by half.
 */
export function changesOf(lora: LoraFile, target: LoraTarget, strength: number): WeightChanges {
  const placed = new Map<string, PlacedChange[]>();
  const add = (place: Place | undefined, changeOf: typeof weightChange, name: string) => {
    if (place === undefined) return;
    const shape = placeShape(place, target.weights.get(place.key)!.shape);
    const change = changeOf(lora.name, lora.modules.get(name)!, shape, strength);
    if (change !== undefined) placed.set(place.key, [...(placed.get(place.key) ?? []), { place, change }]);
  };
  const places = strength === 0 ? undefined : placesByName(target);
  if (places !== undefined) refuseUnknown(lora, places);
  for (const name of lora.modules.keys()) {
    const { weight } = places?.get(name) ?? {};
    if (inputsOf(lora, name, weight, target) === undefined) add(weight, weightChange, name);
    add(places?.get(name)?.bias, biasChange, name);
  }
  const all = [...placed].map(
    ([key, changes]) => [key, combined(changes, target.weights.get(key)!.shape[0]!)] as const,
  );
  const after = target.isRounded ? rounding : () => [];
  return new Map(all.map(([key, change]) => [key, [change, ...after(target.weights.get(key)!.dtype)]]));
}

/** TensorProto.DataType of the types of 16 bits. */
const SHORT_TYPES: ReadonlyMap<string, number> = new Map([
  ["F16", 10],
  ["BF16", 16],
]);
const FLOAT = { int: 1 };

function rounding(dtype: StoredWeight["dtype"]): readonly WeightChange[] {
  const type = SHORT_TYPES.get(dtype);
  if (type === undefined) return [];
  return [(graph, weight) => graph.node("Cast", [graph.node("Cast", [weight], { to: { int: type } })], { to: FLOAT })];
}

/** Throws model.unsupported for a tensor of an unknown form that belongs to one of these layers. */
export function refuseUnknown({ name, unknown }: LoraFile, layers: ReadonlyMap<string, unknown>): void {
  for (const key of unknown) {
    if (!isOfLayer(key, layers)) continue;
    const message = `LoRA ${quotedName(name)}: its tensor ${quotedName(key)} changes a layer in a way that latentkit does not support.`;
    throw new LatentkitError("model.unsupported", message, { received: quotedName(key) });
  }
}

const isOfLayer = (key: string, layers: ReadonlyMap<string, unknown>): boolean =>
  beginnings(key).some((beginning) => layers.has(beginning));

/** Layers and keys of a LoRA that none of these networks has. */
export function unmatchedModules(lora: LoraFile, targets: readonly LoraTarget[]): readonly string[] {
  const names = targets.map(placesByName);
  const unmatched = lora.unknown.filter((key) => !names.some((layers) => isOfLayer(key, layers)));
  for (const [name, { tensors }] of lora.modules) {
    const places = names.flatMap((byName) => byName.get(name) ?? []);
    if (places.length === 0) unmatched.push(name);
    for (const role of places.some(({ bias }) => bias) ? [] : BIAS_ROLES)
      if (places.length > 0 && tensors.has(role)) unmatched.push(tensors.get(role)!.key);
  }
  return unmatched;
}

/** Inputs of a layer [model's, LoRA's] if it takes the network's inputs and the LoRA is for a model with fewer. */
function inputsOf(
  { modules, inputs }: LoraFile,
  name: string,
  place: Place | undefined,
  target: LoraTarget,
): readonly [own: number, other: number] | undefined {
  if (inputs !== undefined || place === undefined || place.key !== target.inputs) return undefined;
  const { tensors } = modules.get(name)!;
  const [, own = 1] = target.weights.get(place.key)!.shape;
  const [, other = own, ...kernel] = (tensors.get("down") ?? tensors.get("diff"))?.weight.shape ?? [];
  const isFlat = kernel.length === 0 && target.weights.get(place.key)!.shape.length > 2;
  return isFlat || own <= other ? undefined : [own, other];
}

/** A warning about the layer that takes a network's inputs, if the LoRA is for a model with fewer: it stays as it is. */
export function leftOutInputs(lora: LoraFile, targets: readonly LoraTarget[]): string | undefined {
  for (const target of targets) {
    const places = placesByName(target);
    for (const name of lora.modules.keys()) {
      const [own, other] = inputsOf(lora, name, places.get(name)?.weight, target) ?? [];
      if (own !== undefined)
        return `LoRA ${quotedName(lora.name)}: ${quotedName(name)} is left out, as the model has ${own} inputs and not ${other}.`;
    }
  }
  return undefined;
}

const BIAS_ROLES = ["diff_b", "b_norm"] as const;
const SHOWN = 3;

/** A warning about the parts of a LoRA without effect; undefined if all have one. */
export function unmatchedWarning(lora: LoraFile, unmatched: readonly string[]): string | undefined {
  if (unmatched.length === 0) return undefined;
  const names = unmatched.slice(0, SHOWN).map((name) => quotedName(name));
  const rest = unmatched.length > SHOWN ? ` and ${unmatched.length - SHOWN} more` : "";
  const lost = new Set(unmatched);
  const layers = [...lora.modules.keys()];
  const effect = layers.length > 0 && layers.every((name) => lost.has(name)) ? " has no effect" : "";
  return `LoRA ${quotedName(lora.name)}${effect}: the model has no layers for ${names.join(", ")}${rest}.`;
}

/** Shape that a LoRA sees of a weight. */
function placeShape({ rows, transposed }: Place, shape: readonly number[]): readonly number[] {
  if (rows !== undefined) return [lengthOf(rows), ...shape.slice(1)];
  return transposed ? [...shape].reverse() : shape;
}

/** One change for all of them, of a weight of `length` rows. */
function combined(changes: readonly PlacedChange[], length: number): WeightChange {
  const ofWhole = changes.filter(({ place }) => place.rows === undefined);
  const change: WeightChange = (graph, weight, shape) => {
    const whole = ofWhole.reduce((value, placed) => changeWhole(graph, value, shape, placed), weight);
    const ofRows = changes.flatMap(({ place, change }) => {
      const { rows } = place;
      return rows === undefined
        ? []
        : [{ rows, change: (part: Value) => change(graph, part, placeShape(place, shape)) }];
    });
    return ofRows.length === 0 ? whole : withChangedRows(graph, whole, { axis: 0, length: shape[0]! }, ofRows);
  };
  const areSums = changes.every((placed) => !placed.place.transposed && placed.change.ofProduct !== undefined);
  if (!areSums) return change;
  const ofProduct: WeightChange["ofProduct"] = (graph, product, x) => {
    const whole = ofWhole.reduce((value, placed) => placed.change.ofProduct!(graph, value, x), product);
    const ofRows = changes.flatMap(({ place, change }) => {
      const { rows } = place;
      return rows === undefined ? [] : [{ rows, change: (part: Value) => change.ofProduct!(graph, part, x) }];
    });
    return ofRows.length === 0 ? whole : withChangedRows(graph, whole, { axis: -1, length }, ofRows);
  };
  return Object.assign(change, { ofProduct });
}

function changeWhole(
  graph: OnnxGraph,
  weight: Value,
  shape: readonly number[],
  { place, change }: PlacedChange,
): Value {
  if (!place.transposed) return change(graph, weight, shape);
  const turned = graph.node("Transpose", [weight]);
  return graph.node("Transpose", [change(graph, turned, placeShape(place, shape))]);
}
