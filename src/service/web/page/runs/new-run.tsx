import { useState } from "preact/hooks";
import type { NamedGraph, Parameter } from "../api/types.ts";
import { linesOf, MOST_RUNS, planRuns } from "../batch/plan.ts";
import { startBatch } from "../batch/start-batch.ts";
import { Drawer } from "../parts/drawer.tsx";
import { Fields, type Values } from "../parts/fields.tsx";
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
  const [values, setValues] = useState<Values>(first);
  const [error, setError] = useState<Error>();
  const [priority, setPriority] = useState("");
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

  const startAll = async (own: Values) => {
    const id = crypto.getRandomValues(new Uint32Array(1))[0]!.toString(16).padStart(8, "0");
    const runs = planRuns(id, own, axes);
    if (runs.length > MOST_RUNS)
      throw new Error(`A batch has at most ${MOST_RUNS} runs, these would be ${runs.length}.`);
    const name = graph?.default === false ? graph.name : undefined;
    const common = { graph: name, priority: Number(priority) };
    await startBatch(client, id, common, runs, (count) => setStarted(`${count} of ${runs.length} are started.`));
    goTo("batch", id);
  };

  const start = async (event: Event) => {
    event.preventDefault();
    setSending(true);
    const keys = new Set(parameters.map(({ key }) => key));
    const own = Object.fromEntries(Object.entries(values).filter(([key]) => keys.has(key)));
    // a message that is JSON names each value; an agent of its own takes the text
    const message = graph === undefined ? String(values.message ?? "") : JSON.stringify(own);
    const body = { message, priority: Number(priority), ...(graph?.default === false && { graph: graph.name }) };
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
          <Fields
            parameters={parameters.filter(({ key }) => !axisKeys.has(key))}
            values={values}
            onChange={setValues}
          />
          {parameters.length === 0 && <p>This graph takes no values: each run is the same.</p>}
          {graph !== undefined && parameters.length > 0 && (
            <Axes parameters={parameters} axes={axisTexts} onChange={setAxisTexts} />
          )}
          <div class="field">
            <label for="priority">Priority</label>
            <input
              id="priority"
              type="number"
              min={-100}
              max={100}
              step={1}
              placeholder="0"
              value={priority}
              onInput={({ currentTarget }) => setPriority(currentTarget.value)}
            />
            <p class="hint">Higher ones start first, from -100 to 100. Runs of one session stay in order.</p>
          </div>
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
