import { useEffect, useMemo, useState } from "preact/hooks";
import type { Model, NodeDescription } from "./api.ts";
import { Empty, Problem, Scroller, SearchBox } from "./parts/components.tsx";
import { useLoaded } from "./parts/service.ts";
import { byteSize } from "./parts/words.ts";

/** Time after which files that were not read yet are asked for again. */
const AGAIN_MS = 2000;

interface Listing {
  readonly has_folders: boolean;
  readonly models: readonly Model[];
  /** Whether the heads of all files have been read. */
  readonly is_complete: boolean;
}

/** The model files of the service. */
export function ModelsView() {
  const [looks, setLooks] = useState(0);
  const { value, error } = useLoaded<Listing>("api/page/models", looks);
  useEffect(() => {
    if (value === undefined || value.is_complete) return;
    const timer = setTimeout(() => setLooks(looks + 1), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [value]);
  const [words, setWords] = useState("");
  const models = (value?.models ?? []).filter(({ name, kind, family = "" }) =>
    `${name} ${kind} ${family}`.toLowerCase().includes(words.trim().toLowerCase()),
  );
  return (
    <div class="view">
      <div class="view-main scrolls">
        <header class="bar">
          <h2>Models</h2>
          <SearchBox label="Search models" hint="Search by name, folder or family" words={words} onWords={setWords} />
        </header>
        <Problem error={error} />
        {value === undefined && error === undefined && <p class="waiting">Reading the heads of the files …</p>}
        {value !== undefined && models.length === 0 && (
          <Empty title={value.models.length > 0 ? "No model matches." : "No model files."}>
            {!value.has_folders && (
              <p>
                Without a model, latentkit draws placeholders. Start the service with <code>--models DIR</code> to
                render with your own checkpoints.
              </p>
            )}
          </Empty>
        )}
        {models.length > 0 && (
          <Scroller label="Model files" kind="table">
            <table>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Folder</th>
                  <th scope="col">Family</th>
                  <th scope="col">Size</th>
                  <th scope="col">Types</th>
                </tr>
              </thead>
              <tbody>
                {models.map(({ kind, name, family, refusal, bytes, dtypes }) => (
                  <tr key={`${kind}/${name}`}>
                    <th scope="row">{name}</th>
                    <td>{kind}</td>
                    <td>{family ?? <span class="failure">{refusal}</span>}</td>
                    <td>{byteSize(bytes)}</td>
                    <td>{dtypes.join(" ")}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroller>
        )}
      </div>
    </div>
  );
}

const MOST_CHOICES = 12;

/** The nodes that graphs of this service may hold, by category. */
export function NodesView() {
  const { value, error } = useLoaded<{ nodes: readonly NodeDescription[] }>("api/page/nodes");
  const [words, setWords] = useState("");
  const nodes = value?.nodes ?? [];
  const matching = useMemo(() => nodes.filter((node) => matches(node, words)), [nodes, words]);
  const categories = [...new Set(matching.map(({ category }) => category))].sort(byName);
  return (
    <div class="view">
      <div class="view-main scrolls">
        <header class="bar">
          <h2>Nodes</h2>
          <SearchBox label="Search nodes" hint="Search by name, type or words" words={words} onWords={setWords} />
          <span class="hint" role="status">
            {matching.length === 1 ? "1 node" : `${matching.length} nodes`}
          </span>
        </header>
        <Problem error={error} />
        {value !== undefined && matching.length === 0 && <Empty title="No node matches." />}
        {categories.map((category) => (
          <section key={category} class="category">
            <h3>{category}</h3>
            {matching
              .filter((node) => node.category === category)
              .map((node) => (
                <NodeEntry key={node.name} node={node} />
              ))}
          </section>
        ))}
      </div>
    </div>
  );
}

/** Categories that begin with "_" are experiments: they come last. */
const byName = (a: string, b: string) =>
  Number(a.startsWith("_")) - Number(b.startsWith("_")) || (a.toLowerCase() < b.toLowerCase() ? -1 : 1);

function matches({ name, display_name, description, category, output }: NodeDescription, words: string): boolean {
  const text = [name, display_name, description, category, ...output].join(" ").toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function NodeEntry({ node }: { node: NodeDescription }) {
  const { name, display_name, description, input, input_order, output, output_name } = node;
  const inputs = [
    ...input_order.required.map((key) => [key, input.required[key], false] as const),
    ...(input_order.optional ?? []).map((key) => [key, input.optional?.[key], true] as const),
  ];
  return (
    <details class="library-node">
      <summary>
        <b>{display_name}</b> {display_name !== name && <code>{name}</code>}
      </summary>
      {description !== "" && <p>{description}</p>}
      <dl class="facts">
        {inputs.map(([key, spec, isOptional]) => (
          <div key={key}>
            <dt>
              {key} {isOptional && <span class="hint">optional</span>}
            </dt>
            <dd>{spec === undefined ? "" : inWords(spec)}</dd>
          </div>
        ))}
        <div>
          <dt>Outputs</dt>
          <dd>
            {output.map((type, i) => (output_name[i] === type ? type : `${output_name[i]} (${type})`)).join(", ") ||
              "none"}
          </dd>
        </div>
      </dl>
    </details>
  );
}

function inWords([type, options]: NonNullable<NodeDescription["input"]["required"][string]>): string {
  const { default: fallback, min, max } = options;
  const range = min === undefined || max === undefined ? [] : [`${min} to ${max}`];
  const first = fallback === undefined ? [] : [`default ${JSON.stringify(fallback)}`];
  if (typeof type === "string") return [type, ...range, ...first].join(", ");
  const rest = type.length - MOST_CHOICES;
  return [...type.slice(0, MOST_CHOICES), ...(rest > 0 ? [`and ${rest} more`] : [])].join(", ");
}
