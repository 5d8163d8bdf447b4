import { useMemo, useState } from "preact/hooks";
import type { NodeDescription } from "../api/types.ts";
import { Empty, Problem } from "../parts/notice.tsx";
import { useLoaded } from "../parts/service.ts";

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
          <label class="grow">
            <span class="hidden">Search nodes</span>
            <input
              type="search"
              placeholder="Search by name, type or words"
              value={words}
              onInput={({ currentTarget }) => setWords(currentTarget.value)}
            />
          </label>
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
                <Node key={node.name} node={node} />
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

function Node({ node }: { node: NodeDescription }) {
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
