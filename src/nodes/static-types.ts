import type { InputSpec } from "./inputs.js";
import type { NodeDefinition } from "./types.js";

// decision 30
/** Value that a caller of `invokeNode` may give: numbers in any form, and what has a text for a text. */
type Given<Value> = unknown extends Value ? unknown : GivenOne<Value>;
type GivenOne<Value> = Value extends number | bigint
  ? number extends Value
    ? number | bigint | string
    : bigint extends Value
      ? number | bigint | string
      : Value
  : Value extends string
    ? string extends Value
      ? string | number | bigint | boolean
      : Value
    : Value;
/** Values for the inputs of a node, by their names; a node that takes lists checks each entry itself. */
export type GivenInputs<I, L> = {
  readonly [Name in keyof I]?: L extends true
    ? unknown
    : I[Name] extends InputSpec<infer Value>
      ? Given<Value>
      : unknown;
};

interface NodeTypes {
  readonly inputs: object;
  readonly result: readonly unknown[];
}
interface AnyTypes extends NodeTypes {
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly result: unknown[];
}
/** Static types of a node; a definition that carries none takes and returns anything. */
export type TypesOf<Node> = Node extends { readonly types?: infer Types }
  ? NonNullable<Types> extends infer Own extends NodeTypes
    ? Own
    : AnyTypes
  : AnyTypes;
type ByKey<Nodes, Key> = string extends Key ? never : Extract<Nodes, { readonly key: Key }>;
/** The node that a key names among others; any node where none is known by it. */
export type NodeByKey<Nodes, Key> = [ByKey<Nodes, Key>] extends [never] ? NodeDefinition : ByKey<Nodes, Key>;
/** Inputs of a node by their names, with any value: those of a key come from a graph, a form, a message. */
export type NamedInputs<Node> = { readonly [Name in keyof TypesOf<Node>["inputs"]]?: unknown };
