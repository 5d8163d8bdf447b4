import { useState } from "preact/hooks";
import type { Parameter } from "../api/types.ts";
import { Fields, type Values } from "../parts/fields.tsx";
import { Problem } from "../parts/notice.tsx";
import { goTo } from "../parts/route.ts";
import { useService } from "../parts/service.ts";

/** Inputs that are listed at once; the search finds the others. */
const MOST_FIELDS = 60;

/** Form with the inputs of a graph, those that its author named first, which runs it. `text`: the graph, as JSON. */
export function RunGraph({ text, parameters }: { text: string; parameters: readonly Parameter[] }) {
  const client = useService();
  const [values, setValues] = useState<Values>({});
  const [words, setWords] = useState("");
  const [error, setError] = useState<Error>();
  const [isSending, setSending] = useState(false);
  const named = parameters.filter(({ named }) => named);
  const others = parameters.filter(({ named }) => !named);
  const matching = others.filter(({ key, title }) => `${key} ${title}`.toLowerCase().includes(words.toLowerCase()));
  const start = async (event: Event) => {
    event.preventDefault();
    setSending(true);
    try {
      // as texts all the way: parsed here, long seeds would lose digits
      const body = new Blob([`{"graph":${text},"values":${JSON.stringify(values)}}`]);
      const filled = await client.open("api/page/fill", { method: "POST", body });
      const job = new Blob([await filled.arrayBuffer()], { type: "application/json" });
      const response = await client.open("api/v2/jobs", { method: "POST", body: job });
      goTo("runs", ((await response.json()) as { id: string }).id);
    } catch (problem) {
      setError(problem as Error);
      setSending(false);
    }
  };
  return (
    <section class="run-graph" aria-label="Run this graph">
      <h3>Run</h3>
      <form class="form" onSubmit={start}>
        <Fields parameters={named} values={values} onChange={setValues} />
        <Problem error={error} />
        <button type="submit" class="primary" disabled={isSending}>
          Run
        </button>
        {others.length > 0 && (
          <details class="text" open={named.length === 0}>
            <summary>
              {named.length === 0 ? "Inputs" : "Other inputs"} ({others.length})
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
              <Fields parameters={matching.slice(0, MOST_FIELDS)} values={values} onChange={setValues} />
              {matching.length > MOST_FIELDS && (
                <p class="hint">{matching.length - MOST_FIELDS} more: search for them.</p>
              )}
            </div>
          </details>
        )}
      </form>
    </section>
  );
}
