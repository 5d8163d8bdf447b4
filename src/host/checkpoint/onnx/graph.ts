import { isAbsolute, join, parse, relative, sep } from "node:path";
import { LatentkitError } from "../../../base/errors.js";
import type { StoredEntry, StoredType } from "../../../io/safetensors.js";
import { ProtobufWriter } from "./protobuf.js";
import { CPU_TARGET, type Target } from "./target.js";

/** Name of a value in a graph. */
export type Value = string & { readonly __value: unique symbol };

export type Attribute = { int: number } | { float: number } | { ints: readonly number[] } | { text: string };

/** Sides of a value; a text is a side that is known when the graph runs, equal texts are equal sides. */
export type Sides = readonly (number | string)[];

/** Types of a graph's own inputs and outputs. */
export type PortType = keyof typeof TYPE;

interface NodeOptions {
  /** Domain of the operator; the default is ONNX's own. */
  readonly domain?: "com.microsoft";
}

/** A graph as ONNX Runtime takes it: the model and where the files lie that it refers to. */
export interface EncodedGraph {
  /** A ModelProto. */
  readonly bytes: Uint8Array;
  /** Folder that holds all files of weights; "" if there are none. */
  readonly folder: string;
  /** Paths of the files of weights. */
  readonly files: readonly string[];
}

/** A tensor in a file. */
type StoredTensor = Omit<StoredEntry, "dtype"> & { readonly dtype: string; readonly file: string };

/** Operators with one result, as an operator that chooses holds them. */
interface Branch {
  readonly nodes: readonly Node[];
  readonly output: Value;
}

interface Node {
  readonly op: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly Value[];
  readonly attributes: Readonly<Record<string, Attribute | Branch>>;
}

interface Port {
  readonly name: string;
  readonly type: number;
  /** Undefined: as its operator says. */
  readonly sides?: Sides;
}

interface Constant {
  readonly name: Value;
  readonly type: number;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** Numbers of TensorProto.DataType. */
const TYPE = { float: 1, int32: 6, int64: 7, float16: 10 } as const;
const STORED_TYPE: Readonly<Record<string, number>> = {
  U8: 2,
  F32: 1,
  F16: 10,
  F64: 11,
  BF16: 16,
  F8_E4M3: 17,
  F8_E5M2: 19,
};

/** The domain of operators that only ONNX Runtime has. */
export const MICROSOFT = { domain: "com.microsoft" } as const;
const IR_VERSION = 10;
/** First operator set in which 8-bit floats pass every operator that moves values. */
const OPSET = 21;
const OPERATOR_SETS = [
  ["", OPSET],
  [MICROSOFT.domain, 1],
] as const;
/** DataLocation.EXTERNAL of a TensorProto. */
const EXTERNAL = 1;

// decisions: Weights stay in the user's file
/** An ONNX graph in the making; its weights stay in their files. Source of the schema: onnx.proto3 of ONNX 1.16. */
export class OnnxGraph {
  readonly name: string;
  #nodes: Node[] = [];
  readonly #inputs: Port[] = [];
  readonly #outputs: Port[] = [];
  readonly #constants = new Map<string, Constant>();
  readonly #stored: { readonly name: Value; readonly tensor: StoredTensor; readonly isConstant: boolean }[] = [];
  /** Constants that are listed as inputs too. */
  readonly #changeable = new Set<Value>();
  /** For which stored weights wait. */
  #event: Value | undefined;
  /** Empty lists by the value that has to be there first. */
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
   * The float32 result of one of two branches, by a bool of one element. A branch may use all values there are; none but its
   * result can be used outside.
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

  // 4.3 GB of float32 for a model whose file has 3.1; 0.27 GB so
  /**
   * The result of `build`, whose stored weights wait until `event` is there; if undefined, they do not. ONNX Runtime runs nodes
   * without inputs of a run as early as it can: all weights of a network would be float32 at once, or copied in loading.
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

  /** A value once `event` is there. It takes neither time nor memory: no axis is added. */
  after(value: Value, event: Value): Value {
    let axes = this.#noAxes.get(event);
    if (axes === undefined) {
      // the number of its values, which is not known before the run, no times
      axes = this.node("Expand", [this.node("Size", [event]), this.ints([0])]);
      this.#noAxes.set(event, axes);
    }
    // after Reshape, ONNX Runtime would give each side a name of its own, in a time that grows with the square of their number
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
   * A weight that stays in its file, in its stored type; a small one may be taken for a constant. Throws model.invalid for a
   * type other than floats.
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
   * Encodes the graph as a ModelProto. `overridable` weights, all floats but constant ones or those of a type, are listed as
   * graph inputs too: the runtime then takes them for changeable, so it neither converts nor packs them when it loads, but in
   * every run. It compares each weight with the list many times, which takes seconds for a long one.
   * Throws model.unsupported if no folder holds all files (several drives).
   */
  encode({ overridable }: { overridable: boolean | StoredType }): EncodedGraph {
    const files = [...new Set(this.#stored.map(({ tensor }) => tensor.file))];
    const folder = folderOf(files);
    const model = new ProtobufWriter();
    model.integer(1, IR_VERSION);
    model.text(2, "latentkit");
    model.message(7, (graph) => this.#write(graph, { folder, files }, overridable));
    for (const [domain, version] of OPERATOR_SETS)
      model.message(8, (opset) => {
        opset.text(1, domain);
        opset.integer(2, version);
      });
    return { bytes: model.finish(), folder, files };
  }

  /** Writes the fields of a GraphProto. */
  #write(
    graph: ProtobufWriter,
    { folder, files }: Pick<EncodedGraph, "folder" | "files">,
    overridable: boolean | StoredType,
  ): void {
    for (const node of this.#nodes) graph.message(1, (message) => writeNode(message, node));
    graph.text(2, this.name);
    for (const constant of this.#constants.values())
      graph.message(5, (message) => {
        message.integers(1, constant.shape);
        message.integer(2, constant.type);
        message.text(8, constant.name);
        message.bytes(9, constant.bytes);
      });
    const weights: Port[] = [...this.#constants.values()]
      .filter(({ name }) => this.#changeable.has(name))
      .map(({ name, type, shape }) => ({ name, type, sides: shape }));
    const locations = new Map(files.map((file) => [file, relative(folder, file).split(sep).join("/")]));
    for (const { name, tensor, isConstant } of this.#stored) {
      const type = STORED_TYPE[tensor.dtype]!;
      if ((overridable === true && tensor.dtype !== "U8" && !isConstant) || overridable === tensor.dtype)
        weights.push({ name, type, sides: tensor.shape });
      graph.message(5, (message) => {
        message.integers(1, tensor.shape);
        message.integer(2, type);
        message.text(8, name);
        writeLocation(message, tensor, locations.get(tensor.file)!);
      });
    }
    for (const port of [...this.#inputs, ...weights]) graph.message(11, (message) => writePort(message, port));
    for (const port of this.#outputs) graph.message(12, (message) => writePort(message, port));
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

/** Writes the fields of a NodeProto. */
function writeNode(message: ProtobufWriter, node: Node): void {
  for (const input of node.inputs) message.text(1, input);
  for (const output of node.outputs) message.text(2, output);
  message.text(3, node.outputs[0]!);
  message.text(4, node.op);
  for (const [name, attribute] of Object.entries(node.attributes))
    message.message(5, (field) => writeAttribute(field, name, attribute));
  message.text(7, node.domain);
}

/** Writes the fields of an AttributeProto; field 20 is its AttributeType. */
function writeAttribute(message: ProtobufWriter, name: string, attribute: Attribute | Branch): void {
  message.text(1, name);
  if ("nodes" in attribute) {
    message.message(6, (graph) => {
      for (const node of attribute.nodes) graph.message(1, (field) => writeNode(field, node));
      graph.text(2, name);
      graph.message(12, (field) => writePort(field, { name: attribute.output, type: TYPE.float }));
    });
    message.integer(20, 5);
  } else if ("float" in attribute) {
    message.float(2, attribute.float);
    message.integer(20, 1);
  } else if ("int" in attribute) {
    message.integer(3, attribute.int);
    message.integer(20, 2);
  } else if ("text" in attribute) {
    message.text(4, attribute.text);
    message.integer(20, 3);
  } else {
    message.integers(8, attribute.ints);
    message.integer(20, 7);
  }
}

/** Writes the fields of a ValueInfoProto. */
function writePort(message: ProtobufWriter, { name, type, sides }: Port): void {
  message.text(1, name);
  message.message(2, (typeProto) =>
    typeProto.message(1, (tensor) => {
      tensor.integer(1, type);
      if (sides === undefined) return;
      tensor.message(2, (shape) => {
        for (const side of sides)
          shape.message(1, (dimension) => {
            if (typeof side === "number") dimension.integer(1, side);
            else dimension.text(2, side);
          });
      });
    }),
  );
}

/** Writes the fields of a TensorProto that say where its values are; the runtime takes only paths relative to a folder. */
function writeLocation(message: ProtobufWriter, { from, to }: StoredTensor, location: string): void {
  const entries = { location, offset: String(from), length: String(to - from) };
  for (const [key, value] of Object.entries(entries))
    message.message(13, (entry) => {
      entry.text(1, key);
      entry.text(2, value);
    });
  message.integer(14, EXTERNAL);
}

/** Deepest folder that holds all files, "" for none. */
function folderOf(files: readonly string[]): string {
  if (files.length === 0) return "";
  let folder = join(files[0]!, "..");
  for (const file of files)
    while (!isBelow(folder, file)) {
      if (folder === parse(folder).root)
        throw new LatentkitError(
          "model.unsupported",
          `Files of one model must lie on one drive, received ${files[0]} and ${file}.`,
        );
      folder = join(folder, "..");
    }
  return folder;
}

/** True if a path is below a folder; on Windows a path relative to another drive is absolute. */
function isBelow(folder: string, file: string): boolean {
  const path = relative(folder, file);
  return path !== ".." && !path.startsWith(`..${sep}`) && !isAbsolute(path);
}
