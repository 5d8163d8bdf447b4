import type { InferenceSession, OnnxValue, Tensor } from "onnxruntime-node";
import { halfValue } from "../../../io/safetensors.js";
import type { SessionOptions } from "../session/options.js";
import type { Port, SessionPorts } from "../session/sessions.js";

type Ort = typeof import("onnxruntime-node");

/** Values of one input, float32 or whole numbers, before they get the type that the session takes. */
export interface SessionInput {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array | readonly number[];
}

/** Values of one output, as float32 from any type. */
export interface SessionOutput {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** Values by name that pass from session to session without a copy, on the GPU if the first leaves them there. */
export type PassedValues = Record<string, Tensor>;

/** A session of ONNX Runtime that takes and returns float32, with inputs and outputs of any type. */
export class OnnxSession {
  readonly ports: SessionPorts;
  readonly #types: ReadonlyMap<string, string>;
  readonly #ort: Ort;
  readonly #session: InferenceSession;

  private constructor(ort: Ort, session: InferenceSession) {
    this.#ort = ort;
    this.#session = session;
    this.ports = { inputs: session.inputMetadata.map(portOf), outputs: session.outputMetadata.map(portOf) };
    this.#types = new Map(this.ports.inputs.map(({ name, type }) => [name, type]));
  }

  /** Makes a session of a model: a ModelProto, or the path of a file that holds one. Throws what ONNX Runtime throws. */
  static async create(ort: Ort, model: Uint8Array | string, options: SessionOptions): Promise<OnnxSession> {
    const { InferenceSession } = ort;
    // two overloads
    const session = await (typeof model === "string"
      ? InferenceSession.create(model, options)
      : InferenceSession.create(model, options));
    return new OnnxSession(ort, session);
  }

  /** Runs the session; `names` are those of the outputs to compute, all if absent. */
  async run(
    inputs: readonly SessionInput[],
    names?: readonly string[],
    passed: PassedValues = {},
  ): Promise<SessionOutput[]> {
    const results = Object.entries(await this.#compute(inputs, names, passed));
    return results.map(([name, value]) => ({ name, shape: value.dims, values: toFloats(name, value) }));
  }

  /** Runs the session for another one, which takes all of its outputs. */
  async stage(inputs: readonly SessionInput[]): Promise<PassedValues> {
    return (await this.#compute(inputs)) as PassedValues;
  }

  #compute(
    inputs: readonly SessionInput[],
    names: readonly string[] = this.#session.outputNames,
    passed: PassedValues = {},
  ): Promise<InferenceSession.OnnxValueMapType> {
    const feeds = Object.fromEntries(inputs.map((input) => [input.name, this.#toOnnx(input)]));
    return this.#session.run({ ...feeds, ...passed }, names);
  }

  release(): Promise<void> {
    return this.#session.release();
  }

  /** Throws for a name that is not an input: ONNX Runtime would silently ignore it. */
  #toOnnx({ name, shape, values }: SessionInput): Tensor {
    const type = this.#types.get(name);
    const { Tensor } = this.#ort;
    const numbers = values instanceof Float32Array ? values : Float64Array.from(values);
    switch (type) {
      case "float32":
        return new Tensor(type, values instanceof Float32Array ? values : Float32Array.from(values), shape);
      case "float16": {
        const halves = toHalves(Float32Array.from(numbers));
        // onnxruntime-node 1.30 replaces these by Node 24's Float16Array, whose length its binding takes for 0.
        return Object.defineProperty(new Tensor(type, halves, shape), "data", { value: halves });
      }
      case "float64":
        return new Tensor(type, Float64Array.from(numbers), shape);
      case "int64":
        return new Tensor(type, BigInt64Array.from(Array.from(numbers, (value) => BigInt(Math.trunc(value)))), shape);
      case "int32":
        return new Tensor(type, Int32Array.from(numbers), shape);
      case "bool":
        return new Tensor(
          type,
          Uint8Array.from(numbers, (value) => Number(value !== 0)),
          shape,
        );
      case undefined:
        throw new Error(`the model has no input "${name}", only ${[...this.#types.keys()].join(", ")}`);
      default:
        throw new Error(`input "${name}" has type ${type}, which is not supported`);
    }
  }
}

const portOf = (metadata: InferenceSession.ValueMetadata): Port =>
  metadata.isTensor
    ? { name: metadata.name, type: metadata.type, shape: metadata.shape }
    : { name: metadata.name, type: "none", shape: [] };

/** Values of an output as float32. */
function toFloats(name: string, value: OnnxValue): Float32Array {
  // reading it may end the process
  if (value.location !== "cpu") throw new Error(`output "${name}" stays on the device`);
  const { type, data } = value;
  if (type === "float16") {
    // a Float16Array if the JavaScript engine has one
    const { buffer, byteOffset, length } = data as Uint16Array;
    return fromHalves(new Uint16Array(buffer, byteOffset, length));
  }
  if (data instanceof Float32Array) return data;
  if (data instanceof BigInt64Array) return Float32Array.from(data, Number);
  if (data instanceof Float64Array || data instanceof Int32Array || data instanceof Uint8Array)
    return Float32Array.from(data);
  throw new Error(`output "${name}" has type ${type}, which is not supported`);
}

/** Values of binary16 numbers, exactly. @internal */
export const fromHalves = (halves: Uint16Array): Float32Array => Float32Array.from(halves, halfValue);

/** The nearest binary16 numbers, ties to even. */
export function toHalves(values: Float32Array): Uint16Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return Uint16Array.from(words, halfOf);
}

/** Binary16 number nearest to a binary32 number: 8 bits of exponent become 5, 23 of fraction 10. */
function halfOf(word: number): number {
  const sign = (word >>> 16) & 0x8000;
  const exponent = ((word >>> 23) & 255) - 112;
  const fraction = word & 0x7fffff;
  if (exponent === 143) return sign | (fraction === 0 ? 0x7c00 : 0x7e00);
  if (exponent >= 31) return sign | 0x7c00;
  if (exponent < -10) return sign;
  // numbers below 2^-14 have no leading one of their own; a carry goes into the exponent, as it must
  if (exponent <= 0) return sign | shiftedToEven(fraction | 0x800000, 14 - exponent);
  return sign | shiftedToEven((exponent << 23) | fraction, 13);
}

function shiftedToEven(bits: number, shift: number): number {
  const half = bits >>> shift;
  const rest = bits & ((1 << shift) - 1);
  const tie = 1 << (shift - 1);
  return rest > tie || (rest === tie && (half & 1) === 1) ? half + 1 : half;
}
