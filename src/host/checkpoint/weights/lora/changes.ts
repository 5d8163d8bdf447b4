import { LatentkitError } from "../../../../base/errors.js";
import type { OnnxGraph, Value } from "../../onnx/graph.js";
import type { WeightChange, WeightChanges } from "../network.js";
import { quotedName } from "../stored.js";
import { beginnings } from "../wrapped-keys.js";
import type { LoraFile } from "./lora-file.js";
import { type LoraTarget, type Place, placesByName } from "./names.js";
import { biasChange, weightChange } from "./weight-change.js";

/** Change of a weight, or of a part of it. */
interface PlacedChange {
  readonly place: Place;
  readonly change: WeightChange;
}

// decision 221
/**
 * Changes that a LoRA makes to the weights of one network, none for strength 0. A layer that the network does not have is
 * left out: see unmatchedModules. Throws model.invalid where a tensor does not fit the weight it is for, or lacks another
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
    add(places?.get(name)?.weight, weightChange, name);
    add(places?.get(name)?.bias, biasChange, name);
  }
  return new Map([...placed].map(([key, changes]) => [key, [combined(changes)]]));
}

/** Throws model.unsupported for a tensor of a form that is not known, where it is of one of these layers. */
export function refuseUnknown({ name, unknown }: LoraFile, layers: ReadonlyMap<string, unknown>): void {
  for (const key of unknown) {
    if (!isOfLayer(key, layers)) continue;
    const message = `LoRA ${quotedName(name)}: its tensor ${quotedName(key)} changes a layer in a way that latentkit does not know.`;
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

const BIAS_ROLES = ["diff_b", "b_norm"] as const;
const SHOWN = 3;

/** One sentence on what of a LoRA has no effect; undefined if nothing. */
export function unmatchedWarning(lora: LoraFile, unmatched: readonly string[]): string | undefined {
  if (unmatched.length === 0) return undefined;
  const names = unmatched.slice(0, SHOWN).map((name) => quotedName(name));
  const rest = unmatched.length > SHOWN ? ` and ${unmatched.length - SHOWN} more` : "";
  return `LoRA ${quotedName(lora.name)}: the model has no layers for ${names.join(", ")}${rest}.`;
}

/** Shape that a LoRA sees of a weight. */
function placeShape({ third, transposed }: Place, shape: readonly number[]): readonly number[] {
  if (third !== undefined) return [shape[0]! / 3, ...shape.slice(1)];
  return transposed ? [...shape].reverse() : shape;
}

/** One change for all of them: thirds are taken apart once. */
function combined(changes: readonly PlacedChange[]): WeightChange {
  const ofThirds = changes.filter(({ place }) => place.third !== undefined);
  const ofWhole = changes.filter(({ place }) => place.third === undefined);
  const change: WeightChange = (graph, weight, shape) => {
    const whole = ofWhole.reduce((value, placed) => changeWhole(graph, value, shape, placed), weight);
    if (ofThirds.length === 0) return whole;
    const side = shape[0]! / 3;
    const sides = graph.ints([side, side, side]);
    const thirds = [...graph.nodeWithOutputs("Split", [whole, sides], 3, { axis: { int: 0 } })];
    for (const { place, change } of ofThirds)
      thirds[place.third!] = change(graph, thirds[place.third!]!, placeShape(place, shape));
    return graph.node("Concat", thirds, { axis: { int: 0 } });
  };
  const areSums = changes.every((placed) => !placed.place.transposed && placed.change.ofProduct !== undefined);
  if (!areSums) return change;
  const ofProduct: WeightChange["ofProduct"] = (graph, product, x) => {
    const whole = ofWhole.reduce((value, placed) => placed.change.ofProduct!(graph, value, x), product);
    if (ofThirds.length === 0) return whole;
    const attributes = { axis: { int: -1 }, num_outputs: { int: 3 } };
    const thirds = [...graph.nodeWithOutputs("Split", [whole], 3, attributes)];
    for (const placed of ofThirds) {
      const third = placed.place.third!;
      thirds[third] = placed.change.ofProduct!(graph, thirds[third]!, x);
    }
    return graph.node("Concat", thirds, { axis: { int: -1 } });
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
