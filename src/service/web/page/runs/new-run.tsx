import { useState } from "preact/hooks";
import type { NamedGraph, Parameter } from "../api/types.ts";
import { linesOf, MOST_RUNS, planRuns } from "../batch/plan.ts";
import { startBatch } from "../batch/start-batch.ts";
import { Drawer } from "../parts/drawer.tsx";
import { Problem } from "../parts/notice.tsx";
import { goTo } from "../parts/route.ts";
import { useLoaded, useService } from "../parts/service.ts";
import { Axes, type AxisText } from "./axes.tsx";

interface NewRunProps {
  /** Name of the graph; the service's default where absent. */
  readonly graphName: string | undefined;
  /** Values that stand in the form at first. */
  readonly first: Readonly<Record<string, string>>;
  readonly onStarted: (id: string) => void;
  readonly onClose: () => void;
}

/** Form with the named inputs of a graph of the service, or one message where an agent of its own reads it. */
export function NewRun({ graphName, first, onStarted, onClose }: NewRunProps) {
  const client = useService();
  const { value: loaded, error: loadError } = useLoaded<{ graphs: readonly NamedGraph[] }>("api/graphs");
  const [name, setName] = useState(graphName);
  const [values, setValues] = useState<Readonly<Record<string, string | boolean>>>(first);
  const [error, setError] = useState<Error>();
  const [axisTexts, setAxisTexts] = useState<readonly AxisText[]>([]);
  const [started, setStarted] = useState<string>();
  const [isSending, setSending] = useState(false);
  const graphs = loaded?.graphs ?? [];
  const graph = graphs.find((other) => (name === undefined ? other.default : other.name === name));
  const parameters = graph === undefined ? [MESSAGE] : parametersOf(graph);

  const axes = axisTexts
    .map(({ key, text }) => ({ key, values: linesOf(text) }))
    .filter(({ key, values }) => values.length > 0 && parameters.some((parameter) => parameter.key === key));
  const axisKeys = new Set(axes.map(({ key }) => key));

  const startAll = async (own: Readonly<Record<string, string | boolean>>) => {
    const id = crypto.getRandomValues(new Uint32Array(1))[0]!.toString(16).padStart(8, "0");
    const runs = planRuns(id, own, axes);
    if (runs.length > MOST_RUNS)
      throw new Error(`A batch has at most ${MOST_RUNS} runs, these would be ${runs.length}.`);
    const name = graph?.default === false ? graph.name : undefined;
    await startBatch(client, id, name, runs, (count) => setStarted(`${count} of ${runs.length} are started.`));
    goTo("batch", id);
  };

  const start = async (event: Event) => {
    event.preventDefault();
    setSending(true);
    const keys = new Set(parameters.map(({ key }) => key));
    const own = Object.fromEntries(Object.entries(values).filter(([key]) => keys.has(key)));
    // a message that is JSON names each value; an agent of its own takes the text
    const message = graph === undefined ? String(values.message ?? "") : JSON.stringify(own);
    const body = { message, ...(graph?.default === false && { graph: graph.name }) };
    try {
      if (axes.length > 0) return await startAll(own);
      onStarted((await client.post<{ run_id: string }>("hooks/agent", body)).run_id);
    } catch (problem) {
      setError(problem as Error);
      setSending(false);
    }
  };
  return (
    <Drawer title="New run" onClose={onClose}>
      <Problem error={error ?? loadError} />
      {loaded !== undefined && (
        <form class="form" onSubmit={start}>
          {graphs.length > 1 && (
            <div class="field">
              <label for="graph">Graph</label>
              <select id="graph" value={graph?.name} onChange={({ currentTarget }) => setName(currentTarget.value)}>
                {graphs.map(({ name }) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            </div>
          )}
          {parameters.map((parameter) =>
            axisKeys.has(parameter.key) ? null : (
              <Field
                key={parameter.key}
                parameter={parameter}
                value={values[parameter.key]}
                onChange={(value) => setValues((values) => withValue(values, parameter.key, value))}
              />
            ),
          )}
          {parameters.length === 0 && <p>This graph takes no values: each run is the same.</p>}
          {graph !== undefined && parameters.length > 0 && (
            <Axes parameters={parameters} axes={axisTexts} onChange={setAxisTexts} />
          )}
          {started !== undefined && <p role="status">{started}</p>}
          <button type="submit" class="primary" disabled={isSending}>
            Start
          </button>
        </form>
      )}
    </Drawer>
  );
}

const parametersOf = ({ schema: { properties, required } }: NamedGraph): Parameter[] =>
  Object.entries(properties).map(([key, property]) => ({ ...property, key, required: required.includes(key) }));

const MESSAGE: Parameter = { key: "message", title: "Message", required: true, type: "string" };

function withValue<T extends Readonly<Record<string, string | boolean>>>(
  values: T,
  key: string,
  value: string | boolean,
) {
  if (value !== "") return { ...values, [key]: value };
  // an empty field leaves the graph's own value
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
