import { LatentkitError } from "../../../base/errors.js";
import type { StoredType } from "../../../io/safetensors.js";
import {
  type Attribute,
  type Branch,
  type Constant,
  type EncodedGraph,
  encodeModel,
  type Node,
  type Port,
  type Sides,
  STORED_TYPE,
  type Stored,
  type StoredTensor,
  TYPE,
  type Value,
} from "./model-proto.js";
import { CPU_TARGET, type Target } from "./target.js";

export type { Attribute, EncodedGraph, Sides, Value } from "./model-proto.js";
export { MICROSOFT } from "./model-proto.js";

/** Types of a graph's own inputs and outputs. */
export type PortType = keyof typeof TYPE;

interface NodeOptions {
  /** Domain of the operator; the default is ONNX's own. */
  readonly domain?: "com.microsoft";
}

// decisions: Weights stay in the user's file
/** An ONNX graph in the making; its weights stay in their files. Source of the schema: onnx.proto3 of ONNX 1.16. */
export class OnnxGraph {
  readonly name: string;
  #nodes: Node[] = [];
  readonly #inputs: Port[] = [];
  readonly #outputs: Port[] = [];
  readonly #constants = new Map<string, Constant>();
  readonly #stored: Stored[] = [];
  /** Constants that are listed as inputs too. */
  readonly #changeable = new Set<Value>();
  /** The value that stored weights wait for. */
  #event: Value | undefined;
  /** Empty lists of axes by the value that they wait for. */
  readonly #noAxes = new Map<Value, Value>();
  #count = 0;

  constructor(
    name: string,
    /** Forms that builders ask for. */
    readonly target: Target = CPU_TARGET,
    /** Whether weights are converted in every run of the CPU, and so not packed for its products. */
    readonly isStreamed = false,
  ) {
    this.name = name;
  }

  /** Declares an input. */
  input(name: string, type: PortType, sides: Sides): Value {
    this.#inputs.push({ name, type: TYPE[type], sides });
    return name as Value;
  }

  /** Declares an output that passes a value on. */
  output(value: Value, name: string, type: PortType, sides: Sides): void {
    this.#outputs.push({ name, type: TYPE[type], sides });
    this.#nodes.push({ op: "Identity", domain: "", inputs: [value], outputs: [name as Value], attributes: {} });
  }

  /** Adds an operator with one output and returns that. An input that is undefined is an optional one left out. */
  node(
    op: string,
    inputs: readonly (Value | undefined)[],
    attributes: Readonly<Record<string, Attribute>> = {},
    options: NodeOptions = {},
  ): Value {
    return this.nodeWithOutputs(op, inputs, 1, attributes, options)[0]!;
  }

  /** Adds an operator with `count` outputs and returns them in order. */
  nodeWithOutputs(
    op: string,
    inputs: readonly (Value | undefined)[],
    count: number,
    attributes: Readonly<Record<string, Attribute>> = {},
    { domain }: NodeOptions = {},
  ): Value[] {
    const outputs = Array.from({ length: count }, () => this.#name(op));
    this.#nodes.push({ op, domain: domain ?? "", inputs: inputs.map((input) => input ?? ""), outputs, attributes });
    return outputs;
  }

  /**
   * The float32 result of one of two branches, chosen by a bool of one element. A branch may use every value made before it;
   * of its own values only the result may be used outside.
   */
  choice(condition: Value, whenTrue: () => Value, whenFalse: () => Value): Value {
    const branchOf = (build: () => Value): Branch => {
      const outer = this.#nodes;
      this.#nodes = [];
      try {
        return { output: build(), nodes: this.#nodes };
      } finally {
        this.#nodes = outer;
      }
    };
    const attributes = { then_branch: branchOf(whenTrue), else_branch: branchOf(whenFalse) };
    const output = this.#name("If");
    this.#nodes.push({ op: "If", domain: "", inputs: [condition], outputs: [output], attributes });
    return output;
  }

  /**
   * The result of `build`, whose stored weights wait for `event`, or for nothing if that is undefined. ONNX Runtime runs nodes
   * that do not depend on inputs as early as it can: all weights of a network would be converted at once, or in loading. A file
   * of 3.1 GB then takes 4.3 GB of memory, and 0.27 GB if they wait.
   */
  waiting<Built>(event: Value | undefined, build: () => Built): Built {
    const outer = this.#event;
    this.#event = event;
    try {
      return build();
    } finally {
      this.#event = outer;
    }
  }

  /** The same value, once `event` has been computed; it takes neither time nor memory. */
  after(value: Value, event: Value): Value {
    let axes = this.#noAxes.get(event);
    if (axes === undefined) {
      // no copy of the number of its values: an empty list, which only a run can make
      axes = this.node("Expand", [this.node("Size", [event]), this.ints([0])]);
      this.#noAxes.set(event, axes);
    }
    // a Reshape would do too, but ONNX Runtime names each side that it makes, in a time that grows with the square of their number
    return this.node("Unsqueeze", [value, axes]);
  }

  /** A float32 constant; equal ones are shared. */
  floats(values: ArrayLike<number>, shape: readonly number[]): Value {
    const floats = Float32Array.from(values);
    const bytes = new Uint8Array(floats.buffer);
    return this.#constant(TYPE.float, Buffer.from(floats.buffer).toString("base64"), shape, () => bytes);
  }

  /** An int64 constant, a list unless `shape` says otherwise; equal ones are shared. */
  ints(values: readonly number[], shape: readonly number[] = [values.length]): Value {
    return this.#constant(TYPE.int64, values.join(" "), shape, () => {
      return new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
    });
  }

  /** A value of 16 bits times a 1 that a runtime takes for changeable: conversions of it are not done while it is loaded. */
  unfolded(value: Value): Value {
    const one = this.#constant(TYPE.float16, "changeable 1", [], () => Uint8Array.of(0x00, 0x3c));
    this.#changeable.add(one);
    return this.node("Mul", [value, one]);
  }

  /**
   * A weight that stays in its file, in its stored type. ONNX Runtime may convert a small one when it loads. Throws
   * model.invalid for a type other than floats.
   */
  stored(tensor: StoredTensor, { isSmall = false } = {}): Value {
    if (STORED_TYPE[tensor.dtype] === undefined)
      throw new LatentkitError("model.invalid", `A weight: expected a type of floats, received ${tensor.dtype}.`);
    const name = this.#name("weight");
    const isLate = this.#event !== undefined && !isSmall;
    this.#stored.push({ name, tensor, isConstant: isSmall || isLate });
    return isLate ? this.after(name, this.#event!) : name;
  }

  /**
   * The graph as ONNX Runtime takes it, as encodeModel. It compares each weight with the list of inputs many times, which takes
   * seconds for a long list.
   */
  encode({ overridable }: { overridable: boolean | StoredType }): EncodedGraph {
    const parts = {
      name: this.name,
      nodes: this.#nodes,
      inputs: this.#inputs,
      outputs: this.#outputs,
      constants: [...this.#constants.values()],
      stored: this.#stored,
      changeable: this.#changeable,
    };
    return encodeModel(parts, overridable);
  }

  /** `values` names the values, and `bytes` makes them if there is no constant like it yet. */
  #constant(type: number, values: string, shape: readonly number[], bytes: () => Uint8Array): Value {
    const key = `${type} ${shape.join(" ")}: ${values}`;
    const known = this.#constants.get(key);
    if (known !== undefined) return known.name;
    const name = this.#name("constant");
    this.#constants.set(key, { name, type, shape, bytes: bytes() });
    return name;
  }

  #name(kind: string): Value {
    return `${kind}_${this.#count++}` as Value;
  }
}
