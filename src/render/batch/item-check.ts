import { resolve } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { findDefinition, findDefinitions, parseGraph, parseGraphText } from "../../graph/parse.js";
import { type CheckedGraph, checkGraph } from "../../graph/validate.js";
import { validationError } from "../../graph/validation-error.js";
import { printJson } from "../../io/json/lossless.js";
import { fillGraph, inputsOfKey } from "../fill/fill.js";
import { type BatchItem, type ItemValues, withOrigin } from "../items/item.js";
import { frozenGraph } from "../source.js";
import { fillTemplate, namesOf } from "./names.js";
import type { PreparedBatch } from "./prepare.js";

/** Looks at items of a batch without rendering them. */
export interface ItemCheck {
  /** Why an item cannot be rendered; undefined where nothing speaks against it before its nodes run. */
  faultOf(item: BatchItem): LatentkitError | undefined;
  /** Why an input refuses a value whatever the others are; undefined where it does not. */
  refusalOf(key: string, value: unknown): LatentkitError | undefined;
  /** Beginnings of the names of an item's files, below the output folder; `number`: see `ItemNames`. */
  namesOf(item: BatchItem, position: number, number: number): string[];
}

/** Stands for the seeds that are not drawn yet. */
const ANY_SEED = { batch: "", position: 0 };

// decision 345
/**
 * Checks items with the nodes and the host of this thread, but for the values where others render: in threads with a setup
 * module, or elsewhere (`isElsewhere`).
 */
export function createItemCheck(
  { graph, run, parsed, job, surroundings }: PreparedBatch,
  isElsewhere = job.setup !== undefined,
): ItemCheck {
  // a copy: what nodes say of themselves is found out once where they are frozen, and the graph may be a caller's
  const frozen = parseGraph(frozenGraph(parseGraphText(printJson(parsed.prompt)) as object), job);
  const { registry } = surroundings;
  const definitions = isElsewhere ? undefined : findDefinitions(frozen, registry);
  const definitionOf = (type: string) => findDefinition(frozen, type, registry);
  const surrounding = { ...job, inputDir: resolve(job.inputDir ?? "input") };
  const checked = (values: ItemValues): CheckedGraph | undefined => {
    if (definitions === undefined) return undefined;
    const prompt = fillGraph(frozen.prompt, { ...graph.set, ...values }, definitionOf);
    return checkGraph({ ...frozen, prompt }, definitions, surrounding, surroundings);
  };
  const drawn = ({ values }: BatchItem) => graph.seedsOf(values, ANY_SEED);
  const nameOf = ({ fields }: BatchItem, values: ItemValues, index: number, number: number) => {
    const named = { index, number, values: { ...graph.set, ...fields, ...values }, prompt: graph.prompt };
    return run.name === undefined ? undefined : fillTemplate(run.name, named);
  };
  const refuse = (item: BatchItem): void => {
    const values = drawn(item);
    const fault = item.fault ?? graph.faultOf(values);
    if (fault !== undefined) throw fault;
    nameOf(item, values, 0, 1);
    const { leftOut, validation } = checked(values) ?? { leftOut: [] };
    if (leftOut.length === 0 || validation === undefined) return;
    if (job.partial !== true || !validation.ok) throw validationError(validation);
  };
  return {
    faultOf(item) {
      try {
        refuse(item);
        return undefined;
      } catch (error) {
        if (!(error instanceof LatentkitError)) throw error;
        return error === item.fault ? error : withOrigin(error, item);
      }
    },
    refusalOf(key, value) {
      const inputs = inputsOfKey(frozen.prompt, key, definitionOf);
      if ("reason" in inputs) return undefined;
      const { validation } = checked(graph.seedsOf({ [key]: value }, ANY_SEED)) ?? {};
      if (validation === undefined) return undefined;
      for (const { nodeId, input } of inputs) {
        const node = validation.nodeErrors[nodeId];
        const errors = (node?.errors ?? []).filter((error) => error.input === input);
        if (errors.length > 0) {
          return validationError({ ...validation, nodeErrors: { [nodeId]: { ...node!, errors } } });
        }
      }
      return undefined;
    },
    namesOf(item, position, number) {
      const values = drawn(item);
      const names = namesOf(graph.prefixes, values, { number, name: nameOf(item, values, position, number) });
      const running = checked(values)?.prepared;
      return Object.entries(names).flatMap(([id, start]) => (running === undefined || running.has(id) ? [start] : []));
    },
  };
}
