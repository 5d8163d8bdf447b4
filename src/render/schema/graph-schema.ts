import { resolve } from "node:path";
import { checkOptions, FLAG, FOLDER, HOST, hasMethods, NAMES, type OptionRules, REGISTRY } from "../../base/options.js";
import { type ClassAliases, parseGraph } from "../../graph/parse.js";
import type { Host } from "../../host/types.js";
import type { Registry } from "../../nodes/registry.js";
import { defaultHost, defaultRegistry } from "../defaults.js";
import { readGraph } from "../source.js";
import { type Parameter, parametersOf } from "./parameters.js";
import { type Exact, isSafe, type PropertySchema } from "./property.js";

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
  /** The nodes; those of the package where absent. */
  readonly registry?: Registry;
  /** Source of the choices of model files; the preview host where absent. */
  readonly host?: Pick<Host, "checkpoints" | "files" | "fileOf">;
  /** Folder of the input images; as in `render` where absent. */
  readonly inputDir?: string;
  /** Other names of node classes: prefix to prefix, or whole key to whole key. */
  readonly classAliases?: ClassAliases;
  /** Placeholders and titled primitives alone: what a message of a hook may hold. */
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
 * placeholders. A default beyond 2^53 is left out; `latentkit schema` prints it. Fails as `render` where the graph
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
