import { useState } from "preact/hooks";
import type { Client, Inspection, Parameter, Receipt } from "../api.ts";
import { type PlannedRun, useStarter } from "../batch/plan.ts";
import { FactList, Problem, Scroller } from "../parts/components.tsx";
import { Fields, Form, type FormValues, runsOf, type Values } from "../parts/form.tsx";
import { addressOf } from "../parts/route.ts";
import { useService } from "../parts/service.ts";
import { GraphDrawing } from "./graph-drawing.tsx";

/** The form that runs the graph of a file, the way to that of the service's own graph, or why there is none. */
export function RunInspected({ inspection: { graph, served } }: { inspection: Inspection }) {
  if (graph === null) return null;
  return (
    <>
      {served !== null && graph.text === null && (
        <p>
          <a class="button primary" href={addressOf("runs", "new", served.name, JSON.stringify(served.values))}>
            Run with other values
          </a>
        </p>
      )}
      {graph.text !== null && <RunGraph text={graph.text} parameters={graph.parameters} />}
      {served === null && graph.text === null && (
        <p class="hint">
          This service only runs graphs from its configuration; set <code>channels.web.comfy_api: token</code> to allow
          any graph.
        </p>
      )}
    </>
  );
}

/** All that a picture or a graph's file says. */
export function InspectionView({ inspection }: { inspection: Inspection }) {
  const { graph, problem, receipt, texts } = inspection;
  return (
    <>
      {problem !== null && <p class="problem">{problem}</p>}
      {receipt !== null && <ReceiptView receipt={receipt} />}
      {graph !== null && (
        <section>
          <h3>Graph</h3>
          <GraphDrawing nodes={graph.nodes} />
          {graph.text === null && <Parameters parameters={graph.parameters} />}
        </section>
      )}
      {Object.entries(texts).map(([key, text]) => (
        <details key={key} class="text">
          <summary>Text “{key}”</summary>
          <Scroller label={`Text ${key}`} kind="pre">
            <pre>{pretty(text)}</pre>
          </Scroller>
        </details>
      ))}
    </>
  );
}

function ReceiptView({ receipt }: { receipt: Receipt }) {
  const { engine, host, node, index, seeds, noise, inputs, models = {}, runtime, pixels } = receipt;
  const rows: [string, string][] = [
    ["Version", `latentkit ${engine}`],
    ["Host", host.preview ? `${host.name} (a stand-in for real models)` : host.name],
    ["Saved by", `node ${node}, picture ${index}`],
    ...Object.entries(seeds).map(([key, digits]): [string, string] => [`Seed ${key}`, digits]),
    ...Object.entries(noise).map(([id, stream]): [string, string] => [`Noise of node ${id}`, stream]),
    ...Object.entries(inputs).map(([name, hash]): [string, string] => [`Input ${name}`, hash]),
    ...Object.entries(models).map(([name, hash]): [string, string] => [`Model ${name}`, hash]),
    ...(runtime === undefined
      ? []
      : [
          ["Runtime", `${runtime.name} ${runtime.version} on ${runtime.adapter ?? runtime.provider}`] satisfies [
            string,
            string,
          ],
        ]),
    ["Pixels", pixels],
  ];
  return (
    <section>
      <h3>Receipt</h3>
      <FactList rows={rows} />
    </section>
  );
}

function Parameters({ parameters }: { parameters: readonly Parameter[] }) {
  if (parameters.length === 0) return null;
  return (
    <details class="text">
      <summary>Inputs ({parameters.length})</summary>
      <dl class="facts">
        {parameters.map(({ key, title, default: value }) => (
          <div key={key}>
            <dt>
              {title} <code>{key}</code>
            </dt>
            <dd>{value === undefined ? "" : String(value)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** JSON with indents; any other text as it is. */
function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  // parsed and printed again, long seeds would lose digits: only line breaks are added
  return text.replace(/([,{[]) ?(?=")/g, "$1\n");
}

/** Inputs that are listed at once; the search finds the others. */
const MOST_FIELDS = 60;

/** Form with the inputs of a graph, first those that its author named or most people change, which runs it. `text`: the graph, as JSON. */
function RunGraph({ text, parameters }: { text: string; parameters: readonly Parameter[] }) {
  const client = useService();
  const [form, setForm] = useState<FormValues>({ values: {}, several: {} });
  const [words, setWords] = useState("");
  const isFirst = ({ named, role }: Parameter) => named || role !== undefined;
  const first = parameters.filter(isFirst);
  const others = parameters.filter((parameter) => !isFirst(parameter));
  const matching = others.filter(({ key, title }) => `${key} ${title}`.toLowerCase().includes(words.toLowerCase()));
  const send = ({ values, tags }: PlannedRun) => sendGraph(client, text, values, tags);
  const { start, error, isSending, progress } = useStarter(send);
  const count = runsOf(form, parameters);
  return (
    <section class="run-graph" aria-label="Run this graph">
      <Form isSending={isSending} onSend={() => start(form, parameters)}>
        <header class="form-head">
          <h3>Run this graph</h3>
          <button type="submit" class="primary" aria-keyshortcuts="Control+Enter" disabled={isSending}>
            {count === 1 ? "Run" : `Run ${count} times`}
          </button>
        </header>
        <Problem error={error} />
        {progress !== undefined && <p role="status">{progress}</p>}
        <Fields parameters={first} form={form} onChange={setForm} />
        {others.length > 0 && (
          <details class="text" open={first.length === 0}>
            <summary>
              {first.length === 0 ? "Inputs" : "Other inputs"} ({others.length})
            </summary>
            <div class="form">
              {others.length > MOST_FIELDS && (
                <label>
                  <span class="hidden">Search inputs</span>
                  <input
                    type="search"
                    placeholder="Name of a node or input"
                    value={words}
                    onInput={({ currentTarget }) => setWords(currentTarget.value)}
                  />
                </label>
              )}
              <Fields parameters={matching.slice(0, MOST_FIELDS)} form={form} onChange={setForm} />
              {matching.length > MOST_FIELDS && (
                <p class="hint">{matching.length - MOST_FIELDS} more: search for them.</p>
              )}
            </div>
          </details>
        )}
      </Form>
    </section>
  );
}

// Posted to /api/v2/jobs as any client would, so that one route checks and starts such graphs.
/** Runs a graph, given as JSON, with values put in; returns the id of the run. */
export async function sendGraph(
  client: Client,
  text: string,
  values: Values,
  tags: readonly string[],
): Promise<string> {
  // as texts all the way: parsed here, long seeds would lose digits
  const body = new Blob([`{"graph":${text},"values":${JSON.stringify(values)}}`]);
  const filled = await client.open("api/page/fill", { method: "POST", body });
  const job = new Blob([await filled.arrayBuffer()], { type: "application/json" });
  const query = new URLSearchParams(tags.map((tag) => ["tag", tag]));
  const response = await client.open(`api/v2/jobs${tags.length === 0 ? "" : `?${query}`}`, {
    method: "POST",
    body: job,
  });
  return ((await response.json()) as { id: string }).id;
}
