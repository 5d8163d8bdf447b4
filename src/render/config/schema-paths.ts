import type { z } from "zod";
import { loadZod } from "../../base/lazy-packages.js";
import { configSchema } from "./config-schema.js";

/** Stands for each name that a user chooses, and for each entry of a list. */
export const ANY_NAME = "NAME";

/** Keys that an object of the schema may hold at a path; none where it is no object. */
export function keysAt(at: readonly PropertyKey[]): string[] {
  let inner: z.core.$ZodType[] = [unwrap(configSchema())];
  for (const key of at) inner = inner.flatMap((type) => step(type, key));
  return inner.flatMap((type) => Object.keys(shapeOf(type)));
}

/** Paths of all keys of the schema, in its order, the keys of what a user names included. */
export function allPaths(schema: z.core.$ZodType = configSchema(), at: readonly string[] = []): string[][] {
  const type = unwrap(schema);
  const { ZodArray, ZodRecord, ZodUnion } = loadZod();
  if (type instanceof ZodUnion) return (type.options as z.core.$ZodType[]).flatMap((option) => allPaths(option, at));
  if (type instanceof ZodArray) return allPaths(type.element, [...at, ANY_NAME]);
  if (type instanceof ZodRecord) return allPaths(type.valueType, [...at, ANY_NAME]);
  return Object.entries(shapeOf(type)).flatMap(([key, inner]) => [[...at, key], ...allPaths(inner, [...at, key])]);
}

/** Dotted paths of all values an environment variable can set, with the type of each. */
export function configLeaves(
  schema: z.core.$ZodType = configSchema(),
  at: string[] = [],
): [string[], z.core.$ZodType][] {
  const type = unwrap(schema);
  if (!(type instanceof loadZod().ZodObject)) return [[at, type]];
  return Object.entries(shapeOf(type)).flatMap(([key, inner]) => configLeaves(inner, [...at, key]));
}

function step(schema: z.core.$ZodType, key: PropertyKey): z.core.$ZodType[] {
  const { ZodArray, ZodRecord, ZodUnion } = loadZod();
  if (schema instanceof ZodArray) return [unwrap(schema.element)];
  if (schema instanceof ZodRecord) return [unwrap(schema.valueType)];
  const shape = shapeOf(schema);
  if (!Object.hasOwn(shape, key)) return [];
  const type = unwrap(shape[key as string]!);
  return type instanceof ZodUnion ? (type.options as z.core.$ZodType[]).map(unwrap) : [type];
}

const shapeOf = (type: z.core.$ZodType): Readonly<Record<string, z.core.$ZodType>> =>
  type instanceof loadZod().ZodObject ? type.shape : {};

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  const { ZodDefault, ZodOptional, ZodPipe, ZodObject } = loadZod();
  if (schema instanceof ZodDefault || schema instanceof ZodOptional) return unwrap(schema.unwrap());
  // an object whose keys are renamed
  return schema instanceof ZodPipe && schema.in instanceof ZodObject ? schema.in : schema;
}
