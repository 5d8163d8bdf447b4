import { useState } from "preact/hooks";
import type { Parameter } from "../api/types.ts";
import type { PlannedRun } from "../batch/plan.ts";
import { useStarter } from "../batch/use-starter.ts";
import { Fields } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { type FormValues, runsOf } from "../parts/form-values.ts";
import { Problem } from "../parts/notice.tsx";
import { useService } from "../parts/service.ts";
import { sendGraph } from "./send-graph.ts";

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
