import { useState } from "preact/hooks";
import type { NamedGraph, Parameter, RunForm } from "../api.ts";
import { type PlannedRun, useStarter } from "../batch/plan.ts";
import { sendGraph } from "../graph/inspection-view.tsx";
import { Drawer, FactList, Problem } from "../parts/components.tsx";
import { Fields, Form, type FormValues, runsOf, StartBar, type Values } from "../parts/form.tsx";
import { useLoaded, useService } from "../parts/service.ts";

interface NewRunProps {
  /** Name of the graph; the service's default if absent. */
  readonly graphName: string | undefined;
  /** Values that stand in the form at first. */
  readonly first: Readonly<Record<string, string>>;
  readonly onClose: () => void;
}

/** Form with the named inputs of a graph of the service, or one message if the service has its own agent. */
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
    const message = messageOf(values, graph === undefined);
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
      {(loaded ?? loadError) === undefined && <p class="waiting">Loading the form …</p>}
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
          {parameters.length === 0 && <p>This graph has no inputs; every run is identical.</p>}
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
            <p class="hint">Higher priorities start first, from -100 to 100. Runs of one session stay in order.</p>
          </div>
          <StartBar count={count} isSending={isSending} progress={progress} />
        </Form>
      )}
    </Drawer>
  );
}

const parametersOf = ({ schema: { properties, required } }: NamedGraph): Parameter[] =>
  Object.entries(properties).map(([key, property]) => ({ ...property, key, required: required.includes(key) }));

/** A message that is JSON names each value; an agent of its own takes the text. */
const messageOf = (values: Values, isText: boolean): string =>
  isText ? String(values.message ?? "") : JSON.stringify(values);

/** Field of an agent that takes a text. */
const MESSAGE: Parameter = { key: "message", title: "Message", required: true, type: "string" };

/** Form with the values that a run was started with, which starts it again as it was or with others. */
export function RunAgain({ id, onClose }: { id: string; onClose: () => void }) {
  const { value, error } = useLoaded<RunForm>(`api/page/form?run_id=${encodeURIComponent(id)}`);
  return (
    <Drawer title="Run again" onClose={onClose}>
      <Problem error={error} />
      {(value ?? error) === undefined && <p class="waiting">Loading the form …</p>}
      {value !== undefined && <AgainForm id={id} from={value} />}
    </Drawer>
  );
}

function AgainForm({ id, from }: { id: string; from: RunForm }) {
  const client = useService();
  const [form, setForm] = useState<FormValues>({ values: from.values, several: {} });
  const hasOwnGraph = from.text !== null;
  const parameters = (from.parameters ?? [MESSAGE]).filter(
    ({ key, named, role }: Parameter) => !hasOwnGraph || named || role !== undefined || Object.hasOwn(from.values, key),
  );
  const send = async ({ values, tags, name }: PlannedRun, key: string): Promise<string> => {
    const isSame = tags.length === 0 && isEqual(values, from.values);
    if (from.text !== null && !isSame) return sendGraph(client, from.text, values, tags);
    const message = messageOf(values, from.parameters === null);
    // other values have no place in the batch of the earlier run
    const body = isSame ? undefined : { message, tags, ...(tags.length > 0 && { name, idempotencyKey: key }) };
    return (await client.post<{ run_id: string }>(`api/runs/${id}/again`, body)).run_id;
  };
  const { start, error, isSending, progress } = useStarter(send);
  const count = runsOf(form, parameters);
  const isFixed = !hasOwnGraph && from.parameters?.some(({ named }) => !named);
  return (
    <Form isSending={isSending} onSend={() => start(form, parameters)}>
      <Problem error={error} />
      {isFixed ? (
        <FactList rows={parameters.map(({ key, title }) => [title, from.values[key]] as const)} />
      ) : (
        <Fields parameters={parameters} form={form} onChange={setForm} />
      )}
      <StartBar count={count} isSending={isSending} progress={progress} />
    </Form>
  );
}

function isEqual(a: Values, b: Values): boolean {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => String(a[key] ?? "") === String(b[key] ?? ""));
}
