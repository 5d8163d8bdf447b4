import { resolve } from "node:path";
import { checkOptions, FLAG, FOLDER, HOST, hasMethods, NAMES, type OptionRules, REGISTRY } from "../../base/options.js";
import { type ClassAliases, findDefinition, type Graph, parseGraph } from "../../graph/parse.js";
import type { Host } from "../../host/host.js";
import { HOSTILE_KEYS, isPlainObject, keysInOrder, NumberLiteral } from "../../io/json/lossless.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { Choice, ChoiceContext, InputSpec } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";
import { isWidget } from "../../nodes/values.js";
import { ownTitle, PRIMITIVE_INPUT, placeholders, wholePlaceholder } from "../fill/keys.js";
import { createSeedTest } from "../fill/seed-digits.js";
import { titleKeys } from "../fill/targets.js";
import { readGraph } from "../source.js";
import { defaultHost, defaultRegistry } from "../surroundings.js";
import { bothLimits, defaultOf, type Exact, IN_TEXT, isSafe, limitsOf, type PropertySchema } from "./property.js";

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** JSON Schema (draft 2020-12) of the values that a graph takes. */
export interface GraphSchema<Bound = number> {
  readonly $schema: string;
  readonly type: "object";
  /** By their keys in `set`. */
  readonly properties: Readonly<Record<string, PropertySchema<Bound>>>;
  readonly required: readonly string[];
}

/** Options of `graphSchema`. */
export interface GraphSchemaOptions {
  /** The nodes; those of the package if absent. */
  readonly registry?: Registry;
  /** Source of the choices of model files; the preview host if absent. */
  readonly host?: Pick<Host, "checkpoints" | "files" | "fileOf">;
  /** Folder of the input images; as in `render` if absent. */
  readonly inputDir?: string;
  /** Other names of node classes: prefix to prefix, or whole key to whole key. */
  readonly classAliases?: ClassAliases;
  /** Only placeholders and titled primitives: what a message of a hook may hold. */
  readonly named?: boolean;
}

const SCHEMA_RULES: OptionRules<GraphSchemaOptions> = {
  registry: REGISTRY,
  host: [HOST[0], (value) => hasMethods(value, "checkpoints")],
  inputDir: FOLDER,
  classAliases: NAMES,
  named: FLAG,
};

/**
 * Describes the values that a graph takes as a JSON Schema: a property for each placeholder, each primitive that its
 * author gave a title, and each other input that holds a value ("6.text"), under its key in `set`. Required are the
 * placeholders. A default beyond 2^53 is left out; `latentkit schema` prints it. Fails as `render` if the graph
 * cannot be read.
 */
export function graphSchema(graph: string | object, options: GraphSchemaOptions = {}): GraphSchema {
  return numberSchema(exactSchema(graph, options));
}

/** Schema of parameters as `graphSchema` makes it. */
export const schemaOf = (parameters: readonly Parameter[]): GraphSchema => numberSchema(exactSchemaOf(parameters));

/** Schema as `graphSchema` makes it, with every digit of a seed. */
export function exactSchema(source: string | object, options: GraphSchemaOptions = {}): GraphSchema<Exact> {
  checkOptions("graphSchema", options, SCHEMA_RULES);
  const { registry = defaultRegistry, host = defaultHost, classAliases, named } = options;
  const { graph, inputDir } = readGraph(source, { registry, classAliases });
  const context = { host, inputDir: resolve(options.inputDir ?? inputDir) };
  return exactSchemaOf(parametersOf(parseGraph(graph, { classAliases }), { registry, context, named }));
}

function exactSchemaOf(parameters: readonly Parameter[]): GraphSchema<Exact> {
  return {
    $schema: DIALECT,
    type: "object",
    properties: Object.fromEntries(parameters.map(({ key, property }) => [key, property])),
    required: parameters.filter(({ isRequired }) => isRequired).map(({ key }) => key),
  };
}

function numberSchema(schema: GraphSchema<Exact>): GraphSchema {
  const properties = Object.entries(schema.properties).map(([key, property]) => [key, inNumbers(property)] as const);
  return { ...schema, properties: Object.fromEntries(properties) };
}

function inNumbers({ minimum, maximum, default: fallback, ...rest }: PropertySchema<Exact>): PropertySchema {
  const isLost = typeof fallback === "bigint" && !isSafe(fallback);
  return {
    ...rest,
    ...(minimum !== undefined && { minimum: Number(minimum) }),
    ...(maximum !== undefined && { maximum: Number(maximum) }),
    ...(fallback !== undefined &&
      !isLost && {
        default: typeof fallback === "bigint" ? Number(fallback) : (fallback as string | number | boolean),
      }),
  };
}

/** A value that a graph takes from outside, under its key in `set`. */
export interface Parameter {
  readonly key: string;
  /** A placeholder needs a value: the graph has none. */
  readonly isRequired: boolean;
  readonly property: PropertySchema<Exact>;
  /** It takes whole numbers beyond 2^53, or passes them on by links. */
  readonly isSeed?: boolean;
  /** Values by names that they had before, which inputs still take. */
  readonly renamed?: ReadonlyMap<unknown, Choice>;
}

export interface ParameterOptions {
  readonly registry: Registry;
  /** Source of the choices that depend on it; without one they are any text. */
  readonly context?: ChoiceContext;
  /** Leaves out inputs that only the id of their node names. */
  readonly named?: boolean;
}

/** A value that stands at an input of a node. */
interface GraphValue {
  readonly nodeId: string;
  readonly input: string;
  readonly value: unknown;
  readonly node: Readonly<Record<string, unknown>>;
  readonly definition: NodeDefinition | undefined;
  readonly spec: InputSpec | undefined;
  readonly isSeed: boolean;
}

// A text in another node is not a parameter because its node is titled: default templates title half of them.
/**
 * Parameters of a graph: placeholders, then primitives by their titles, then all other inputs that hold a value, each
 * in the order of the graph.
 */
export function parametersOf(graph: Graph, options: ParameterOptions): Parameter[] {
  const values = valuesOf(graph, options.registry);
  const settable = values.filter((value) => placeholders(value.value).size === 0 && isSettable(value));
  const titles = titleKeys(graph.prompt, (type) => findDefinition(graph, type, options.registry));
  const isTitled = ({ nodeId, input }: GraphValue) => input === PRIMITIVE_INPUT && titles.has(nodeId);
  const others = options.named ? [] : settable.filter((value) => !isTitled(value));
  return [
    ...placeholderParameters(graph, values, options.context),
    ...settable.filter(isTitled).map((value) => inputParameter(titles.get(value.nodeId)!, value, options)),
    ...others.map((value) => inputParameter(`${value.nodeId}.${value.input}`, value, options)),
  ].filter(({ key }) => !HOSTILE_KEYS.has(key));
}

/** Values and links at the inputs of all nodes, in the order of the graph. */
function valuesOf(graph: Graph, registry: Registry): GraphValue[] {
  const isSeed = createSeedTest(graph.prompt, (type) => findDefinition(graph, type, registry));
  return graph.ids.flatMap((nodeId) => {
    const node = graph.prompt[nodeId] as Readonly<Record<string, unknown>>;
    const definition = findDefinition(graph, String(node.class_type), registry);
    const inputs = isPlainObject(node.inputs) ? node.inputs : {};
    return keysInOrder(inputs).map((input) => {
      const isDeclared = definition !== undefined && Object.hasOwn(definition.inputs, input);
      const spec = isDeclared ? definition.inputs[input] : undefined;
      const value = inputs[input];
      return { nodeId, input, value, node, definition, spec, isSeed: !Array.isArray(value) && isSeed(nodeId, spec) };
    });
  });
}

/** Whether a graph may hold another text, number or boolean there: not a link, not a list. */
function isSettable({ definition, spec, value }: GraphValue): boolean {
  if (Array.isArray(value)) return false;
  if (definition !== undefined) return spec !== undefined && isWidget(spec.type) && spec.type !== "LIST";
  return value instanceof NumberLiteral || ["string", "number", "bigint", "boolean"].includes(typeof value);
}

function inputParameter(key: string, at: GraphValue, { context }: ParameterOptions): Parameter {
  const { spec, value } = at;
  const fallback = defaultOf(spec, value);
  return {
    key,
    isRequired: false,
    isSeed: at.isSeed,
    renamed: spec?.renamed,
    property: {
      title: titleOf(at),
      description: descriptionOf(at),
      ...limitsOf(spec, context),
      ...(fallback !== undefined && { default: fallback }),
    },
  };
}

/** The author's title if the node has one value; else the node's name and the input's. */
function titleOf({ node, definition, input, nodeId }: GraphValue): string {
  const title = ownTitle(node, definition);
  const inputs = isPlainObject(node.inputs) ? Object.values(node.inputs) : [];
  const isOnly = inputs.filter((value) => !Array.isArray(value)).length === 1;
  if (title !== undefined && isOnly) return title;
  return `${title ?? definition?.displayName ?? `Node ${nodeId}`}: ${input}`;
}

function placeholderParameters(
  graph: Graph,
  values: readonly GraphValue[],
  context: ChoiceContext | undefined,
): Parameter[] {
  const parameters = new Map<string, Parameter>();
  for (const value of values) {
    const whole = typeof value.value === "string" ? wholePlaceholder(value.value) : undefined;
    for (const key of placeholders(value.value)) {
      const spec = key === whole ? value.spec : undefined;
      const limits = key === whole ? limitsOf(spec, context) : IN_TEXT;
      const before = parameters.get(key);
      const { title, description, ...first } = before?.property ?? { title: key, description: descriptionOf(value) };
      const both = before === undefined ? limits : bothLimits(first, limits);
      const renamed = before?.renamed ?? spec?.renamed;
      const isSeed = (key === whole && value.isSeed) || before?.isSeed;
      parameters.set(key, { key, isRequired: true, isSeed, renamed, property: { title, description, ...both } });
    }
  }
  // a title or a class may hold one too
  for (const key of placeholders(graph.prompt)) {
    if (!parameters.has(key)) parameters.set(key, { key, isRequired: true, property: { title: key, ...IN_TEXT } });
  }
  return [...parameters.values()];
}

/** The input's own description, or where the value goes. */
function descriptionOf({ nodeId, node, input, spec }: GraphValue): string {
  const tooltip = spec?.options.tooltip;
  if (tooltip !== undefined && tooltip !== "") return tooltip;
  return `Input "${input}" of node ${nodeId} (${String(node.class_type)}).`;
}
