import { useState } from "preact/hooks";
import type { NamedGraph, Parameter } from "../api/types.ts";
import type { PlannedRun } from "../batch/plan.ts";
import { useStarter } from "../batch/use-starter.ts";
import { Drawer } from "../parts/drawer.tsx";
import { Fields } from "../parts/fields.tsx";
import { Form, StartBar } from "../parts/form.tsx";
import { type FormValues, runsOf } from "../parts/form-values.ts";
import { Problem, Waiting } from "../parts/notice.tsx";
import { useLoaded, useService } from "../parts/service.ts";

interface NewRunProps {
  /** Name of the graph; the service's default where absent. */
  readonly graphName: string | undefined;
  /** Values that stand in the form at first. */
  readonly first: Readonly<Record<string, string>>;
  readonly onClose: () => void;
}

/** Form with the named inputs of a graph of the service, or one message where an agent of its own reads it. */
export function NewRun({ graphName, first, onClose }: NewRunProps) {
  const client = useService();
  const { value: loaded, error: loadError } = useLoaded<{ graphs: readonly NamedGraph[] }>("api/graphs");
  const [name, setName] = useState(graphName);
  const [form, setForm] = useState<FormValues>({ values: first, several: {} });
  const [priority, setPriority] = useState("");
  const graphs = loaded?.graphs ?? [];
  const graph = graphs.find((other) => (name === undefined ? other.default : other.name === name));
  const parameters = graph === undefined ? [MESSAGE] : parametersOf(graph);
  const send = async ({ values, name, tags }: PlannedRun, key: string) => {
    // a message that is JSON names each value; an agent of its own takes the text
    const message = graph === undefined ? String(values.message ?? "") : JSON.stringify(values);
    const { run_id } = await client.post<{ run_id: string }>("hooks/agent", {
      message,
      priority: Number(priority),
      ...(graph?.default === false && { graph: graph.name }),
      ...(tags.length > 0 && { tags, name, idempotencyKey: key }),
    });
    return run_id;
  };
  const { start, error, isSending, progress } = useStarter(send);
  const count = runsOf(form, parameters);
  return (
    <Drawer title="New run" onClose={onClose}>
      <Problem error={error ?? loadError} />
      <Waiting isOver={(loaded ?? loadError) !== undefined}>Loading the form …</Waiting>
      {loaded !== undefined && (
        <Form isSending={isSending} onSend={() => start(form, parameters)}>
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
          <Fields parameters={parameters} form={form} onChange={setForm} />
          {parameters.length === 0 && <p>This graph takes no values: each run is the same.</p>}
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
          <StartBar count={count} isSending={isSending} progress={progress} />
        </Form>
      )}
    </Drawer>
  );
}

const parametersOf = ({ schema: { properties, required } }: NamedGraph): Parameter[] =>
  Object.entries(properties).map(([key, property]) => ({ ...property, key, required: required.includes(key) }));

/** Field of an agent that takes a text. */
export const MESSAGE: Parameter = { key: "message", title: "Message", required: true, type: "string" };
