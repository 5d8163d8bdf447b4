import type { HiddenType, NodeDefinition } from "./define.js";
import type { ChoiceContext, InputSpec } from "./inputs.js";
import { choicesOf } from "./values.js";

type DescribedInput = readonly [string | readonly (string | number | boolean)[], Readonly<Record<string, unknown>>];

/** A node as ComfyUI's /object_info describes it. Bounds of seeds are bigints: print it with `printJson`. */
export interface NodeDescription {
  input: {
    required: Record<string, DescribedInput>;
    optional?: Record<string, DescribedInput>;
    hidden?: Record<string, HiddenType>;
  };
  input_order: { required: string[]; optional?: string[]; hidden?: string[] };
  is_input_list: boolean;
  output: string[];
  output_is_list: boolean[];
  output_name: string[];
  name: string;
  display_name: string;
  description: string;
  python_module: string;
  category: string;
  output_node: boolean;
  deprecated?: true;
}

/** Describes a node as ComfyUI does; `context` fills choices that depend on where the graph runs. */
export function describeNode(definition: NodeDefinition, context: ChoiceContext = {}): NodeDescription {
  const inputs = Object.entries(definition.inputs).map(
    ([name, spec]) => [name, describeInput(spec, context), spec.optional] as const,
  );
  const pick = (optional: boolean) =>
    Object.fromEntries(inputs.filter((input) => input[2] === optional).map(([name, input]) => [name, input]));
  const required = pick(false);
  const optional = pick(true);
  const { hidden } = definition;
  const hasOptional = Object.keys(optional).length > 0;
  const hasHidden = Object.keys(hidden).length > 0;
  return {
    input: { required, ...(hasOptional && { optional }), ...(hasHidden && { hidden: { ...hidden } }) },
    input_order: {
      required: Object.keys(required),
      ...(hasOptional && { optional: Object.keys(optional) }),
      ...(hasHidden && { hidden: Object.keys(hidden) }),
    },
    is_input_list: definition.inputIsList,
    output: definition.outputs.map(({ type }) => type),
    output_is_list: definition.outputs.map(({ list }) => list),
    output_name: definition.outputs.map(({ name }) => name),
    name: definition.key,
    display_name: definition.displayName,
    description: definition.description,
    python_module: "latentkit",
    category: definition.category,
    output_node: definition.outputNode,
    ...(definition.deprecated && { deprecated: true as const }),
  };
}

/** ComfyUI's clients expect the list of a choice in place of the type. */
const describeInput = (spec: InputSpec, context: ChoiceContext): DescribedInput => [
  choicesOf(spec, context) ?? spec.type,
  spec.options,
];
