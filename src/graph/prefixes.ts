import { describe } from "../base/errors.js";
import { dateOf, fillTexts, openTexts, withSlashes } from "../io/files/output-path.js";
import { isPlainObject, NumberLiteral } from "../io/json/lossless.js";
import type { Graph } from "./parse.js";
import { titleOf } from "./unknown-classes.js";

/** Input of the nodes that save: the beginning of their files' names. */
export const PREFIX = "filename_prefix";

/** Fills the texts %Node.widget% of a prefix. */
export type FillPrefix = (prefix: unknown) => unknown;

/** Texts of a prefix that a warning names one by one. */
const MAX_NAMED = 8;

/**
 * Returns what fills %KSampler.seed% in the prefixes of a graph, as the editor does: with the value of the first node of
 * that class, else of that title.
 */
export function createFillPrefix({ prompt, ids }: Graph): FillPrefix {
  let byName: ReadonlyMap<string, string> | undefined;
  const lookup = (name: string, input: string): unknown => {
    byName ??= namesOf({ prompt, ids });
    const id = byName.get(name);
    const { inputs } = (id === undefined ? {} : prompt[id]) as { inputs?: unknown };
    const value = isPlainObject(inputs) && Object.hasOwn(inputs, input) ? inputs[input] : undefined;
    return value instanceof NumberLiteral || typeof value !== "object" ? value : undefined;
  };
  return (text) => (typeof text === "string" && text.includes("%") ? filledPrefix(text, lookup) : text);
}

/** Sentences about texts of a prefix that match nothing and stay, as in the editor. */
export const prefixWarnings = (prefix: unknown): string[] =>
  typeof prefix === "string" && prefix.includes("%")
    ? [...openTexts(prefix)]
        .slice(0, MAX_NAMED)
        .map(
          (text) =>
            `input "${PREFIX}": ${describe(text)} matches neither a date nor a value of the graph and is kept unchanged.`,
        )
    : [];

/** The prefix under which a node of a run saves: dates are filled, and a backslash begins a sub-folder, as in names of models. */
export const prefixOfRun = (prefix: string, now: Date): string =>
  withSlashes(fillTexts(prefix, (name) => dateOf(name, now)));

/** The first node of each class, and of each title that is not a class. */
function namesOf({ prompt, ids }: Pick<Graph, "prompt" | "ids">): ReadonlyMap<string, string> {
  const byClass = new Map<string, string>();
  const byTitle = new Map<string, string>();
  for (const id of [...ids].reverse()) {
    const node = prompt[id] as Record<string, unknown>;
    if (typeof node.class_type === "string") byClass.set(node.class_type, id);
    const title = titleOf(node);
    if (title !== undefined) byTitle.set(title, id);
  }
  return new Map([...byTitle, ...byClass]);
}

/** Looks up a widget of a node by the node's name and its own; undefined if there is none. */
export type WidgetLookup = (node: string, widget: string) => unknown;

/** Characters that file systems refuse, or read as folders. */
const UNSAFE = new Set('/?<>\\:*|"');

/**
 * Fills a prefix of file names as the editor does before it queues a graph: %date:yyyy-MM-dd% with the local time,
 * %KSampler.seed% with the value of a widget. Any other text between percent signs stays, and so do dates without `now`.
 */
export const filledPrefix = (text: string, lookup: WidgetLookup, now?: Date): string =>
  fillTexts(text, (name) => (now && dateOf(name, now)) ?? widgetValue(name, lookup));

function widgetValue(name: string, lookup: WidgetLookup): string | undefined {
  const [node, widget, more] = name.split(".", 3);
  if (widget === undefined || more !== undefined) return undefined;
  const value = lookup(node!, widget);
  return value === undefined ? undefined : safe(value instanceof NumberLiteral ? Number(value.text) : value);
}

const safe = (value: unknown): string =>
  [...String(value ?? "")]
    .map((character) => (UNSAFE.has(character) || isControl(character) ? "_" : character))
    .join("");

const isControl = (character: string): boolean => character < " " || character === "\x7f";
