// docs/nodes.md: every node of the registry, as the preview host describes it.
import { createPreviewHost, registry } from "../../dist/index.js";
import { describeNode } from "../../dist/nodes/describe.js";
import { code, table } from "./markdown.mjs";

const MAX_CHOICES = 12;

export function body() {
  const context = { host: createPreviewHost() };
  const nodes = registry.keys().map((key) => {
    const definition = /** @type {import("../../dist/index.js").NodeDefinition} */ (registry.get(key));
    return { definition, section: section([definition, describeNode(definition, context)]) };
  });
  const deprecated = nodes.filter(({ definition }) => definition.deprecated);
  const current = nodes.filter(({ definition }) => !definition.deprecated);
  return `
# Nodes

latentkit has ${nodes.length} nodes. ${deprecated.length} of them are deprecated: they are for old workflows, not for new ones. On the command line,
\`npx latentkit nodes\` and \`npx latentkit nodes "ext latentNoisy"\` print the same tables; \`--json\` prints them as ComfyUI's
\`/object_info\` does. Define your own nodes with [\`defineNode\`](api.md#definenode).

Types are ComfyUI's. IMAGE is \`[B, H, W, C]\` in 0…1, MASK \`[B, H, W]\`, LATENT \`[B, C, H, W]\` in \`samples\`. An input without
the word "optional" must be in the graph; its default is the value that the editor starts with.

## Deprecated nodes

${deprecated.map((node) => node.section).join("\n\n")}

## Nodes

${current.map((node) => node.section).join("\n\n")}
`;
}

function section([node, described]) {
  const order = described.input_order;
  const inputs = [...order.required, ...(order.optional ?? [])].map((name) => {
    const [type, options] = described.input.required[name] ?? described.input.optional[name];
    const isList = Array.isArray(type);
    return [code(name), isList ? "choice" : type, notes(node.inputs[name], options, isList ? type : [])];
  });
  const outputs = node.outputs.map(({ name, type, list }) => [code(name), type, list ? "list" : ""]);
  const facts = [
    node.outputNode ? "output node" : "",
    node.inputIsList ? "takes whole lists" : "",
    node.writesFiles ? "writes files" : "",
    node.reachesNetwork ? "reaches the network" : "",
    node.usesKey ? "uses a key" : "",
  ].filter((fact) => fact !== "");
  const hidden = Object.keys(node.hidden);
  if (node.description === "") throw new Error(`${node.key} has no description.`);
  return [
    `### ${node.key}`,
    `${node.description}${facts.length === 0 ? "" : ` (${facts.join(", ")})`}`,
    inputs.length === 0 ? "No inputs." : table([["Input", "Type", ""], ...inputs]),
    outputs.length === 0 ? "No outputs." : table([["Output", "Type", ""], ...outputs]),
    ...(hidden.length === 0 ? [] : [`Hidden: ${hidden.map(code).join(", ")}.`]),
  ].join("\n\n");
}

function notes({ optional, lazy }, { default: fallback, min, max, step, tooltip }, choices) {
  const listed = choices.slice(0, MAX_CHOICES).map(code).join(", ");
  const range =
    min === undefined
      ? max === undefined
        ? ""
        : `at most ${max}`
      : `${min}${max === undefined ? " or more" : ` … ${max}`}`;
  return [
    optional ? "optional" : "",
    lazy ? "lazy" : "",
    fallback === undefined ? "" : `default ${code(JSON.stringify(fallback))}`,
    range,
    step === undefined ? "" : `step ${step}`,
    choices.length > MAX_CHOICES ? `${listed} … (${choices.length} in all)` : listed,
    tooltip ?? "",
  ]
    .filter((part) => part !== "")
    .join("; ");
}
