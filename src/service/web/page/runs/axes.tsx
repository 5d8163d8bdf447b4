import type { Parameter } from "../api/types.ts";

/** An axis as it is typed: a parameter and its values, one a line. */
export interface AxisText {
  readonly key: string;
  readonly text: string;
}

const NAMES = ["First axis", "Second axis"];

/** Two axes of a batch: parameters that take several values. */
export function Axes({
  parameters,
  axes,
  onChange,
}: {
  parameters: readonly Parameter[];
  axes: readonly AxisText[];
  onChange: (axes: readonly AxisText[]) => void;
}) {
  const change = (index: number, next: Partial<AxisText>) =>
    onChange(NAMES.map((_, i) => ({ key: "", text: "", ...axes[i], ...(i === index && next) })));
  return (
    <details class="text">
      <summary>Several values</summary>
      <p class="hint">A batch runs every combination. One value a line.</p>
      {NAMES.map((name, index) => {
        const { key, text } = axes[index] ?? { key: "", text: "" };
        return (
          <fieldset key={name} class="axis">
            <legend>{name}</legend>
            <select
              aria-label={`${name}: input`}
              value={key}
              onChange={({ currentTarget }) => change(index, { key: currentTarget.value })}
            >
              <option value="">None</option>
              {parameters.map(({ key, title }) => (
                <option key={key} value={key}>
                  {title}
                </option>
              ))}
            </select>
            <textarea
              aria-label={`${name}: values`}
              rows={4}
              value={text}
              onInput={({ currentTarget }) => change(index, { text: currentTarget.value })}
            />
          </fieldset>
        );
      })}
    </details>
  );
}
