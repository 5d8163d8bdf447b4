import type { ModelSampling } from "../tensor/sampling/model-sampling.js";
import type { Guidance, Model } from "./types.js";

/** A change of a model that concerns neither its host nor its network. */
export interface ModelChange {
  readonly sampling?: ModelSampling;
  /** Returns the guidance that follows the one before, for the sampling that the model has in the end. */
  guidance?(before: Guidance | undefined, sampling: ModelSampling): Guidance;
}

const SOURCE = Symbol("latentkit.sourceOfModel");

interface Source {
  readonly base: Model;
  readonly changes: readonly ModelChange[];
}

// a property, and no private field: models of another copy of the package are models too
const sourceOf = (model: Model & { readonly [SOURCE]?: Source }): Source =>
  model[SOURCE] ?? { base: model, changes: [] };

/** The model with a change; its methods stay those of the host's own model, which they are called on. */
export function derivedModel(model: Model, change: ModelChange): Model {
  const { base, changes } = sourceOf(model);
  return derived(base, [...changes, change]);
}

/** The host's own model, without what `derivedModel` has changed. */
export const hostModel = (model: Model): Model => sourceOf(model).base;

/** Changes the host's own model, and makes the result all that `derivedModel` has changed. */
export function withHostModel(model: Model, change: (base: Model) => Model): Model {
  const { base, changes } = sourceOf(model);
  return changes.reduce(derivedModel, change(base));
}

function derived(base: Model, changes: readonly ModelChange[]): Model {
  const sampling = changes.findLast((change) => change.sampling !== undefined)?.sampling ?? base.sampling;
  let { guidance } = base;
  for (const change of changes) guidance = change.guidance?.(guidance, sampling) ?? guidance;
  const model: Model = {
    sampling,
    guidance,
    predict: base.predict?.bind(base),
    forRun: base.forRun?.bind(base),
    preview: base.preview?.bind(base),
    patch: base.patch && ((patch) => withHostModel(model, (own) => own.patch!(patch))),
  };
  // not enumerable: a spread copy is a model of its own
  return Object.freeze(Object.defineProperty(model, SOURCE, { value: { base, changes } satisfies Source }));
}
