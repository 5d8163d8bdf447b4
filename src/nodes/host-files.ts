import { describe, LatentkitError } from "../base/errors.js";
import { hostModel } from "../host/derived-model.js";
import type { Checkpoint, Host, HostFiles, Model, ModelPatch } from "../host/types.js";
import type { NodeContext } from "./define.js";
import { hostName, PLURALS } from "./file-kinds.js";
import { choice, clip, model } from "./inputs.js";

/** Input with the choice of the host's files of a kind; any text where it has no models of the kind. */
export const fileName = (kind: keyof HostFiles) => ({
  ...choice(({ host }) => host?.files?.(kind), { tooltip: `One of the host's ${PLURALS[kind]}.` }),
  files: kind,
});

/** Everything of a node's context that loading a file needs. */
export type Loading = Pick<NodeContext, "host" | "signal" | "log">;

/** A file's name in a graph, by the input that holds it. */
export type NamedInput = Readonly<Record<string, string>>;

/** Loads a checkpoint. Fails as its host does, with the input's name in front. */
export async function loadHostCheckpoint(named: NamedInput, { host, signal, log }: Loading): Promise<Checkpoint> {
  const [[input, name]] = Object.entries(named) as [[string, string]];
  return atInput(input, () => host.loadCheckpoint(name, signal, log));
}

/**
 * Loads a file of a kind. Fails with host.missing where the host has none, with input.not-in-list for a name that it does
 * not list, and as its host does, with the input's name in front.
 */
export async function loadHostFile<Kind extends keyof HostFiles>(
  kind: Kind,
  named: NamedInput,
  { host, signal, log }: Loading,
  settings?: Readonly<Record<string, string>>,
): Promise<HostFiles[Kind]> {
  const [[input, name]] = Object.entries(named) as [[string, string]];
  const names = host.files?.(kind);
  if (names === undefined || host.loadFile === undefined) throw lacking(host, `no ${PLURALS[kind]}`);
  // a name that came through a link was not validated
  const file = names.includes(name) ? name : host.fileOf?.(kind, name);
  if (file !== undefined) return atInput(input, () => host.loadFile!(kind, file, signal, settings, log));
  const message = `${hostName(host)}: expected one of its ${PLURALS[kind]}, received ${describe(name)}.`;
  throw new LatentkitError("input.not-in-list", message, { received: describe(name) });
}

/** Codes of errors that a model file is the reason of. */
const OF_FILES = /^(?:model|safetensors|file)\./;

/** Runs the work on a model file; its errors get the name of the input that names the file. */
export async function atInput<Result>(input: string, work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LatentkitError) || !OF_FILES.test(error.code)) throw error;
    const message = `input "${input}": ${error.message}`;
    throw new LatentkitError(error.code, message, { ...error.details, input }, { cause: error });
  }
}

/** Error of a host without something that a node needs: "no LoRAs". */
export const lacking = (host: Host, nothing: string): LatentkitError =>
  new LatentkitError("host.missing", `${hostName(host)}: it has ${nothing}.`);

/** The model with a changed network. Fails with host.missing where its host cannot change it. */
export function patchedModel(model: Model, { node, inputs }: ModelPatch, host: Host): Model {
  if (model.patch === undefined) throw lacking(host, `no models that ${node} can change`);
  return model.patch({ node, inputs });
}

/** MODEL: one whose network the node changes, unless another input has a value with which it does not. */
export const changedModel = (unless?: readonly [input: string, value: unknown]) => ({
  ...model(),
  needs: { ability: "patches", unless } as const,
});

/** CLIP: one with encoders beyond CLIP's. */
export const textsClip = () => ({ ...clip(), needs: { ability: "texts" } as const });

/** Inputs of a patch: models as their host made them. */
export const ofHost = (models: Readonly<Record<string, Model>>): Record<string, Model> =>
  Object.fromEntries(Object.entries(models).map(([name, model]) => [name, hostModel(model)]));

/** A node's run that changes the network of `model` by all other inputs; not at all where the input `off` is 0. */
export const patches =
  (node: string, off?: string) =>
  ({ model, ...inputs }: { readonly model: Model } & Readonly<Record<string, unknown>>, { host }: Loading) => ({
    MODEL: off !== undefined && inputs[off] === 0 ? model : patchedModel(model, { node, inputs }, host),
  });

/** A node's run that merges `model2` into the network of `model1`, by all other inputs. */
export const merges =
  (node: string) =>
  ({ model1, model2, ...inputs }: { readonly model1: Model; readonly model2: Model }, { host }: Loading) => ({
    MODEL: patchedModel(model1, { node, inputs: { ...inputs, ...ofHost({ model2 }) } }, host),
  });
