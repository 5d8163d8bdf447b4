import type { Parameter } from "../api/types.ts";

/** Values of a form by the keys of their parameters; an empty field has none. */
export type Values = Readonly<Record<string, string | boolean>>;

interface FieldsProps {
  readonly parameters: readonly Parameter[];
  readonly values: Values;
  readonly onChange: (change: (values: Values) => Values) => void;
}

/** A field for each parameter. An empty one leaves the graph's own value. */
export function Fields({ parameters, values, onChange }: FieldsProps) {
  return (
    <>
      {parameters.map((parameter) => (
        <Field
          key={parameter.key}
          parameter={parameter}
          value={values[parameter.key]}
          onChange={(value) => onChange((values) => withValue(values, parameter.key, value))}
        />
      ))}
    </>
  );
}

function withValue(values: Values, key: string, value: string | boolean): Values {
  if (value !== "") return { ...values, [key]: value };
  const { [key]: _, ...others } = values;
  return others;
}

interface FieldProps {
  readonly parameter: Parameter;
  readonly value: string | boolean | undefined;
  readonly onChange: (value: string | boolean) => void;
}

function Field({ parameter, value, onChange }: FieldProps) {
  const { key, title, description, required } = parameter;
  const id = `value-${key}`;
  return (
    <div class="field">
      <label for={id}>
        {title}
        {required && <span class="hint"> needed</span>}
      </label>
      <Control id={id} parameter={parameter} value={value} onChange={onChange} />
      {description !== undefined && <p class="hint">{description}</p>}
    </div>
  );
}

function Control({ id, parameter, value, onChange }: FieldProps & { id: string }) {
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
  return <textarea id={id} rows={4} required={required} placeholder={placeholder} value={text} onInput={onInput} />;
}
