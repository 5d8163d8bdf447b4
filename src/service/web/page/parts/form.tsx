import type { ComponentChildren } from "preact";
import type { Parameter } from "../api.ts";

/** A form that Ctrl+Enter, or Cmd+Enter, sends from any of its fields. */
export function Form({
  isSending,
  onSend,
  children,
}: {
  isSending: boolean;
  onSend: () => void;
  children: ComponentChildren;
}) {
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLFormElement }) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (!isSending) event.currentTarget.requestSubmit();
  };
  return (
    <form
      class="form"
      onKeyDown={onKeyDown}
      onSubmit={(event) => {
        event.preventDefault();
        onSend();
      }}
    >
      {children}
    </form>
  );
}

/** Foot of a form, in sight wherever one scrolls: the button that starts its runs, and how many are started. */
export function StartBar({
  count,
  isSending,
  progress,
}: {
  count: number;
  isSending: boolean;
  progress: string | undefined;
}) {
  return (
    <div class="start-bar">
      <button type="submit" class="primary" aria-keyshortcuts="Control+Enter" disabled={isSending}>
        {count === 1 ? "Start" : `Start ${count} runs`}
      </button>
      {progress !== undefined && <p role="status">{progress}</p>}
    </div>
  );
}

interface FieldsProps {
  readonly parameters: readonly Parameter[];
  readonly form: FormValues;
  readonly onChange: (change: FormChange) => void;
}

/** A field for each parameter, which can take several values. An empty one leaves the graph's own value. */
export function Fields({ parameters, form, onChange }: FieldsProps) {
  return (
    <>
      {parameters.map((parameter) => (
        <Field key={parameter.key} parameter={parameter} form={form} onChange={onChange} />
      ))}
    </>
  );
}

function Field({ parameter, form, onChange }: Omit<FieldsProps, "parameters"> & { parameter: Parameter }) {
  const { key, title, description, required } = parameter;
  const id = `value-${key}`;
  const value = form.values[key];
  const several = form.several[key];
  const isSeveral = several !== undefined;
  const toggle = () => {
    // a line break would end a value
    const first = String(value ?? parameter.default ?? "").replace(/\s*\n\s*/g, " ");
    onChange((form) => withSeveral(form, key, isSeveral ? undefined : first));
  };
  return (
    <div class="field">
      <div class="field-head">
        <label for={id}>
          {title}
          {required && <span class="hint"> required</span>}
        </label>
        <button
          type="button"
          class="several"
          aria-pressed={isSeveral}
          aria-label={`Several values: ${title}`}
          onClick={toggle}
        >
          Several values
        </button>
      </div>
      {isSeveral ? (
        <Several
          id={id}
          parameter={parameter}
          text={several}
          onChange={(text) => onChange((form) => withSeveral(form, key, text))}
        />
      ) : (
        <Control
          id={id}
          parameter={parameter}
          value={value}
          onChange={(value) => onChange((form) => withValue(form, key, value))}
        />
      )}
      {isSeveral ? (
        <p class="hint">{parameter.enum === undefined ? "One value per line. " : ""}Each value starts its own run.</p>
      ) : (
        description !== undefined && <p class="hint">{description}</p>
      )}
    </div>
  );
}

/** Several values, one a line, or several of the choices. */
function Several({
  id,
  parameter: { enum: choices },
  text,
  onChange,
}: {
  id: string;
  parameter: Parameter;
  text: string;
  onChange: (text: string) => void;
}) {
  if (choices === undefined) {
    return (
      <textarea id={id} rows={4} required value={text} onInput={({ currentTarget }) => onChange(currentTarget.value)} />
    );
  }
  const chosen = new Set(text.split("\n"));
  return (
    <select
      id={id}
      multiple
      required
      size={Math.min(8, choices.length)}
      onChange={({ currentTarget }) =>
        onChange(Array.from(currentTarget.selectedOptions, ({ value }) => value).join("\n"))
      }
    >
      {choices.map((choice) => (
        <option key={String(choice)} value={String(choice)} selected={chosen.has(String(choice))}>
          {String(choice)}
        </option>
      ))}
    </select>
  );
}

interface ControlProps {
  readonly id: string;
  readonly parameter: Parameter;
  readonly value: string | boolean | undefined;
  readonly onChange: (value: string | boolean) => void;
}

function Control({ id, parameter, value, onChange }: ControlProps) {
  const { type, enum: choices, required, default: fallback, minimum, maximum } = parameter;
  if (type === "boolean") {
    return (
      <input
        id={id}
        type="checkbox"
        checked={value === undefined ? fallback === true : value === true || value === "true"}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
    );
  }
  const text = value === undefined ? "" : String(value);
  if (choices !== undefined) {
    return (
      <select id={id} required={required} value={text} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">{fallback === undefined ? "Choose one" : `As in the graph: ${fallback}`}</option>
        {choices.map((choice) => (
          <option key={String(choice)} value={String(choice)}>
            {String(choice)}
          </option>
        ))}
      </select>
    );
  }
  const onInput = ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
    onChange(currentTarget.value);
  const placeholder = fallback === undefined ? undefined : String(fallback);
  if (type === "integer" || type === "number") {
    const range = [minimum, maximum].every((bound) => bound !== undefined) ? `${minimum} to ${maximum}` : undefined;
    // a text: a number field would round long seeds
    return (
      <input
        id={id}
        required={required}
        inputMode={type === "integer" ? "numeric" : "decimal"}
        placeholder={placeholder ?? range}
        value={text}
        onInput={onInput}
      />
    );
  }
  return <textarea id={id} rows={3} required={required} placeholder={placeholder} value={text} onInput={onInput} />;
}

/** Values of a form by the keys of their parameters; an empty field has none. */
export type Values = Readonly<Record<string, string | boolean>>;

export interface FormValues {
  readonly values: Values;
  /** Texts with one value a line, by the keys of the fields that take several. */
  readonly several: Readonly<Record<string, string>>;
}

type FormChange = (form: FormValues) => FormValues;

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

function withValue(form: FormValues, key: string, value: string | boolean): FormValues {
  if (value !== "") return { ...form, values: { ...form.values, [key]: value } };
  return { ...form, values: without(form.values, key) };
}

/** Lets a field take several values; undefined: one again, the first. */
function withSeveral(form: FormValues, key: string, text: string | undefined): FormValues {
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
