import { useState } from "preact/hooks";
import type { Client } from "../api/client.ts";
import type { Parameter } from "../api/types.ts";
import { type PlannedRun, useStarter } from "../batch/plan.ts";
import { Problem } from "../parts/components.tsx";
import { Fields, Form, type FormValues, runsOf, type Values } from "../parts/form.tsx";
import { useService } from "../parts/service.ts";

/** Inputs that are listed at once; the search finds the others. */
const MOST_FIELDS = 60;

/** Form with the inputs of a graph, first those that its author named or most people change, which runs it. `text`: the graph, as JSON. */
export function RunGraph({ text, parameters }: { text: string; parameters: readonly Parameter[] }) {
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
