import type { Inspection, Parameter, Receipt } from "../api/types.ts";
import { FactList, Scroller } from "../parts/components.tsx";
import { addressOf } from "../parts/route.ts";
import { GraphDrawing } from "./graph-drawing.tsx";
import { RunGraph } from "./run-graph.tsx";

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
