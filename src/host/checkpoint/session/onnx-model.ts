import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, LatentkitError } from "../../../base/errors.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { type FileState, invalid, type NamedFile, unsupported } from "../weights/stored.js";
import { fileStateKey } from "./model-part.js";
import type { CallOptions, Runtime } from "./runtime.js";
import type { Feed, Port, SessionPorts, SessionSource } from "./sessions.js";

const FILE = "model.onnx";
/** Weights of the same network in formats that need a graph of ours or PyTorch. */
const OTHER_FORMATS = [".safetensors", ".bin"];
/** More files than any export has beside a model: one for each weight. */
const MOST_FILES = 4096;
/** Half-precision weights have two: their size in memory is unknown before they are loaded. */
const BYTES_OF_FLOAT = 4;
/** Names of a model that a message lists. */
const MOST_LISTED = 8;
/** A switch of PyTorch that an export may keep as an input. */
const SWITCH = "return_dict";

/** A network of a folder of diffusers, exported to ONNX, which the runtime loads from its file. */
export class OnnxModel {
  readonly #runtime: Runtime;
  readonly #source: SessionSource;
  #ports: SessionPorts | undefined;

  private constructor(runtime: Runtime, source: SessionSource) {
    this.#runtime = runtime;
    this.#source = source;
  }

  /**
   * Opens the network in a sub-folder of a folder; `label` is its name for messages. ONNX Runtime reads the files: the
   * model, and its weights beside it, never outside the sub-folder. Throws model.invalid if it is absent,
   * model.unsupported if it exists in another format.
   */
  static async open(runtime: Runtime, label: string, folder: NamedFile, component: string): Promise<OnnxModel> {
    const files = await filesOf(folder, component);
    const names = files.map(({ name }) => name);
    if (!names.includes(FILE)) {
      const other = names.find((name) => OTHER_FORMATS.some((ending) => name.endsWith(ending)));
      const expected = `${component}/${FILE}`;
      throw other === undefined
        ? invalid(folder.name, expected, "a folder without it")
        : unsupported(folder.name, `${expected}, as Optimum exports it`, `${component}/${other}`);
    }
    const states = files.map(({ state }) => state);
    const fileBytes = states.reduce((sum, { bytes }) => sum + bytes, 0);
    const path = join(folder.path, component, FILE);
    return new OnnxModel(runtime, {
      key: JSON.stringify([path, ...states.map(fileStateKey)]),
      label,
      parameters: Math.ceil(fileBytes / BYTES_OF_FLOAT),
      fileBytes,
      isFixed: true,
      states,
      make: () => ({ path }),
    });
  }

  get label(): string {
    return this.#source.label;
  }

  /** Inputs and outputs, for which it is loaded once. Rejects as the runtime does. */
  async ports(options: Pick<CallOptions, "signal" | "calls"> = {}): Promise<SessionPorts> {
    this.#ports ??= await this.#runtime.ports(this.#source, options);
    return this.#ports;
  }

  /** Runs the model for some of its outputs. Rejects as the runtime does, and with model.unsupported for other inputs. */
  async run(
    feeds: Readonly<Record<string, Feed>>,
    outputs: readonly string[],
    options: CallOptions = {},
  ): Promise<readonly Tensor[]> {
    const ports = await this.ports(options);
    const all: Record<string, Feed> = {};
    for (const { name } of ports.inputs) {
      if (Object.hasOwn(feeds, name)) all[name] = feeds[name]!;
      else if (name === SWITCH) all[name] = { int64: [0], shape: [] };
      else throw this.#misfit(`the inputs ${listed(Object.keys(feeds))}`, `one more, ${describe(name)}`);
    }
    for (const name of Object.keys(feeds))
      if (!Object.hasOwn(all, name)) throw this.#misfit(`an input ${describe(name)}`, listedPorts(ports.inputs));
    this.outputOf(outputs, ports.outputs);
    const results = await this.#runtime.run(this.#source, all, { ...options, outputs });
    return outputs.map((name) => results[name]!);
  }

  /** An input by its name. Throws model.unsupported if there is none of that name. */
  inputOf(name: string, inputs: readonly Port[]): Port {
    const port = inputs.find((input) => input.name === name);
    if (port !== undefined) return port;
    throw this.#misfit(`an input ${describe(name)}`, listedPorts(inputs));
  }

  /** The first of these names that the model has as an output. Throws model.unsupported if it has none of them. */
  outputOf(names: readonly string[], outputs: readonly Port[]): string {
    const found = names.find((name) => outputs.some((output) => output.name === name));
    if (found !== undefined) return found;
    throw this.#misfit(`an output ${names.map(describe).join(" or ")}`, listedPorts(outputs));
  }

  /** An output that has these sides; undefined ones may be any. Fails with model.invalid for others. */
  requireShape(output: Tensor, sides: readonly (number | undefined)[]): Tensor {
    const { shape } = output;
    if (shape.length === sides.length && sides.every((side, axis) => shape[axis] === (side ?? shape[axis])))
      return output;
    const [expected, received] = [sides, shape].map((each) => `[${each.map((side) => side ?? "any").join(", ")}]`);
    const message = `${this.label}: expected an output of shape ${expected}, received ${received}.`;
    throw new LatentkitError("model.invalid", message, { expected, received });
  }

  #misfit(expected: string, received: string): LatentkitError {
    const message = `${this.label}: expected a model with ${expected}, received ${received}.`;
    return new LatentkitError("model.unsupported", message, { expected, received });
  }
}

const listed = (names: readonly string[]): string => {
  const shown = names.slice(0, MOST_LISTED).map(describe).join(", ");
  return names.length > MOST_LISTED ? `${shown} and ${names.length - MOST_LISTED} more` : shown;
};

const listedPorts = (ports: readonly Port[]): string => listed(ports.map(({ name }) => name)) || "none";

/** Files of a folder in their states; none if it is absent. Throws model.invalid for thousands. */
async function filesOf(
  model: NamedFile,
  component: string,
): Promise<{ readonly name: string; readonly state: FileState }[]> {
  const folder = join(model.path, component);
  const names = await orAbsent(readdir(folder));
  if (names === undefined) return [];
  if (names.length > MOST_FILES)
    throw invalid(model.name, `at most ${MOST_FILES} files in ${component}`, `${names.length}`);
  const files: { name: string; state: FileState }[] = [];
  for (const name of names.sort()) {
    const path = await orAbsent(realpath(join(folder, name)));
    const stats = path === undefined ? undefined : await orAbsent(stat(path, { bigint: true }));
    if (path === undefined || !stats?.isFile()) continue;
    files.push({
      name,
      state: {
        name: `${model.name}/${component}/${name}`,
        path,
        bytes: Number(stats.size),
        modifiedNs: stats.mtimeNs,
        inode: stats.ino,
      },
    });
  }
  return files;
}

/** A result of the file system; undefined for a missing file or folder. */
async function orAbsent<Value>(result: Promise<Value>): Promise<Value | undefined> {
  try {
    return await result;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new LatentkitError("file.read-failed", `${(error as Error).message}.`, {}, { cause: error });
  }
}
