import { isAbsolute, join, parse, relative, sep } from "node:path";
import { LatentkitError } from "../../../base/errors.js";
import type { StoredEntry, StoredType } from "../../../io/safetensors.js";
import { ProtobufWriter } from "./protobuf.js";

/** Name of a value in a graph. */
export type Value = string & { readonly __value: unique symbol };

export type Attribute = { int: number } | { float: number } | { ints: readonly number[] } | { text: string };

/** Sides of a value; a text is a side that is known when the graph runs, equal texts are equal sides. */
export type Sides = readonly (number | string)[];

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
export type StoredTensor = Omit<StoredEntry, "dtype"> & { readonly dtype: string; readonly file: string };

/** One branch of an If: its operators, and the one of their values that it gives. */
export interface Branch {
  readonly nodes: readonly Node[];
  readonly output: Value;
}

export interface Node {
  readonly op: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly Value[];
  readonly attributes: Readonly<Record<string, Attribute | Branch>>;
}

export interface Port {
  readonly name: string;
  readonly type: number;
  /** Absent: as its operator says. */
  readonly sides?: Sides;
}

export interface Constant {
  readonly name: Value;
  readonly type: number;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** A weight that stays in its file. */
export interface Stored {
  readonly name: Value;
  readonly tensor: StoredTensor;
  /** Whether the runtime may take it for a constant. */
  readonly isConstant: boolean;
}

/** A whole graph, before it is encoded. */
export interface GraphParts {
  readonly name: string;
  readonly nodes: readonly Node[];
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  readonly constants: readonly Constant[];
  readonly stored: readonly Stored[];
  /** Constants that are listed as inputs too. */
  readonly changeable: ReadonlySet<Value>;
}

/** Numbers of TensorProto.DataType. */
export const TYPE = { float: 1, int32: 6, int64: 7, float16: 10 } as const;
/** The same by the types of safetensors. */
export const STORED_TYPE: Readonly<Record<string, number>> = {
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

/**
 * Encodes a graph as a ModelProto. `overridable` weights, all floats but constant ones or those of a type, are listed as
 * inputs of the graph too: the runtime then takes them for changeable, so it neither converts nor packs them when it loads,
 * but in every run. Throws model.unsupported if no folder holds all files (several drives).
 */
export function encodeModel(parts: GraphParts, overridable: boolean | StoredType): EncodedGraph {
  const files = [...new Set(parts.stored.map(({ tensor }) => tensor.file))];
  const folder = folderOf(files);
  const model = new ProtobufWriter();
  model.integer(1, IR_VERSION);
  model.text(2, "latentkit");
  model.message(7, (graph) => writeGraph(graph, parts, { folder, files }, overridable));
  for (const [domain, version] of OPERATOR_SETS)
    model.message(8, (opset) => {
      opset.text(1, domain);
      opset.integer(2, version);
    });
  return { bytes: model.finish(), folder, files };
}

/** Writes the fields of a GraphProto. */
function writeGraph(
  graph: ProtobufWriter,
  { name, nodes, inputs, outputs, constants, stored, changeable }: GraphParts,
  { folder, files }: Pick<EncodedGraph, "folder" | "files">,
  overridable: boolean | StoredType,
): void {
  for (const node of nodes) graph.message(1, (message) => writeNode(message, node));
  graph.text(2, name);
  for (const constant of constants)
    graph.message(5, (message) => {
      message.integers(1, constant.shape);
      message.integer(2, constant.type);
      message.text(8, constant.name);
      message.bytes(9, constant.bytes);
    });
  const weights: Port[] = constants
    .filter((constant) => changeable.has(constant.name))
    .map(({ name, type, shape }) => ({ name, type, sides: shape }));
  const locations = new Map(files.map((file) => [file, relative(folder, file).split(sep).join("/")]));
  for (const { name, tensor, isConstant } of stored) {
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
  for (const port of [...inputs, ...weights]) graph.message(11, (message) => writePort(message, port));
  for (const port of outputs) graph.message(12, (message) => writePort(message, port));
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
