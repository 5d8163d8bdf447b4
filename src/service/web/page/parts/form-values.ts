import type { Parameter } from "../api/types.ts";

/** Values of a form by the keys of their parameters; an empty field has none. */
export type Values = Readonly<Record<string, string | boolean>>;

export interface FormValues {
  readonly values: Values;
  /** Texts with one value a line, by the keys of the fields that take several. */
  readonly several: Readonly<Record<string, string>>;
}

export type FormChange = (form: FormValues) => FormValues;

/** A parameter of which each run has another value. */
export interface Axis {
  readonly key: string;
  readonly title: string;
  readonly values: readonly string[];
}

/** Fields with several values, in the order of the form. */
export const axesOf = ({ several }: FormValues, parameters: readonly Parameter[]): Axis[] =>
  parameters.flatMap(({ key, title }) => {
    const values = linesOf(several[key] ?? "");
    return values.length === 0 ? [] : [{ key, title, values }];
  });

/** The values of all other fields; a form may hold some of another graph. */
export const singleValues = ({ values, several }: FormValues, parameters: readonly Parameter[]): Values =>
  Object.fromEntries(
    parameters.flatMap(({ key }) =>
      values[key] === undefined || several[key] !== undefined ? [] : [[key, values[key]]],
    ),
  );

/** Number of runs that a form starts. */
export const runsOf = (form: FormValues, parameters: readonly Parameter[]): number =>
  axesOf(form, parameters).reduce((product, { values }) => product * values.length, 1);

export function withValue(form: FormValues, key: string, value: string | boolean): FormValues {
  if (value !== "") return { ...form, values: { ...form.values, [key]: value } };
  return { ...form, values: without(form.values, key) };
}

/** Lets a field take several values; undefined: one again, the first. */
export function withSeveral(form: FormValues, key: string, text: string | undefined): FormValues {
  if (text !== undefined) return { ...form, several: { ...form.several, [key]: text } };
  const [first = ""] = linesOf(form.several[key] ?? "");
  return withValue({ ...form, several: without(form.several, key) }, key, first);
}

/** Lines of a text that hold something. */
const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

function without<T>(entries: Readonly<Record<string, T>>, key: string): Record<string, T> {
  const { [key]: _, ...others } = entries;
  return others;
}
