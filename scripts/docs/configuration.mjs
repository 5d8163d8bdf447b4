// docs/configuration.md: every key of the schema, with its description, type, default and environment variable.
import { loadZod } from "../../dist/base/lazy.js";
import { configLeaves } from "../../dist/render/config/config.js";
import { configSchema } from "../../dist/render/config/config-schema.js";
import { OTHER_VARIABLES, variableOf } from "../../dist/render/config/load-config.js";
import { code, table } from "./markdown.mjs";

export function body() {
  const defaults = configSchema().parse({});
  const rows = configLeaves().map(([path]) => {
    const key = path.join(".");
    const { description } = schemaAt(path);
    if (description === undefined) throw new Error(`src/render/config/config-schema.ts: ${key} has no description.`);
    const value = path.reduce((inner, name) => inner?.[name], defaults);
    const fallback = value === undefined ? "" : code(JSON.stringify(value));
    return [key, words(schemaAt(path)), fallback, description];
  });
  const group = (prefix) => rows.filter(([key]) => key.startsWith(prefix)).map(([key, ...rest]) => [key, ...rest]);
  const top = rows.filter(([key]) => !/^(channels|limits)\./.test(key));
  const section = (keys) =>
    table([
      ["Key", "Type", "Default", "Meaning"],
      ...keys.map(([key, type, fallback, description]) => [code(key), type, fallback, description]),
    ]);
  /** Rows of the objects that a map of a configuration holds. */
  const rowsOfEach = (path) =>
    Object.entries(schemaAt(path).additionalProperties.properties).map(([key, type]) => {
      const fallback = type.default === undefined ? "" : code(JSON.stringify(type.default));
      return [key, words(type), fallback, type.description];
    });
  const others = Object.entries(OTHER_VARIABLES).map(([name, meaning]) => [code(name), meaning]);
  return `
# Configuration

\`render\`, \`serve\` and \`worker\` take a file in YAML or JSON with \`--config\`. A flag wins over the environment, the
environment over the file, and the file over the default. Unknown keys are refused, with a suggestion. Relative paths in a
file start at the file's folder, all others at the working folder.

Every key has an environment variable: \`LATENTKIT_\` and its path in capitals, joined by \`_\`. \`output_dir\` is
\`${variableOf(["output_dir"])}\`, \`limits.running\` is \`${variableOf(["limits", "running"])}\`. An empty variable is
ignored; write lists and objects as YAML or JSON.

## General

${section(top)}

## The hook service: \`channels.web\`

In a program these are the keys of \`config\` of \`createHookService\`, without \`channels.web.\`.

${section(group("channels."))}

### A sender that signs: \`${INCOMING.join(".")}.NAME\`

These are the keys of one sender. \`signature\`, \`secrets\` and one of \`message\` and \`placeholders\` are required. A
template is a text with \`{{/pointer}}\` (a JSON pointer into the payload) and \`{{Header-Name}}\`. See
[Senders that sign](hooks-webhook.md#senders-that-sign).

${section(rowsOfEach(INCOMING))}

### A webhook: \`${WEBHOOKS.join(".")}.NAME\`

These are the keys of one webhook that is notified when runs end. \`url\` and \`secrets\` are required. See
[Webhooks](hooks-webhook.md#webhooks).

${section(rowsOfEach(WEBHOOKS))}

## Limits: \`limits\`

${section(group("limits."))}

## Other environment variables

${table([["Variable", "Meaning"], ...others])}
`;
}

const INCOMING = ["channels", "web", "incoming"];
const WEBHOOKS = ["channels", "web", "webhooks"];

const schema = loadZod().toJSONSchema(configSchema(), { io: "input", unrepresentable: "any" });

const schemaAt = (path) => path.reduce((inner, key) => inner.properties[key], schema);

function words(type) {
  if (type.enum !== undefined) return type.enum.map(code).join(", ");
  if (type.anyOf !== undefined) return type.anyOf.map(words).join(" or ");
  if (type.additionalProperties) {
    return type.additionalProperties.properties === undefined ? "object" : "objects by name, see below";
  }
  if (type.type === "array") return `list of ${words(type.items).replace(/^(text|object)/, "$1s")}`;
  if (type.type === "number") return "number";
  if (type.type === "object") return code(`{ ${Object.keys(type.properties).join(", ")} }`);
  if (type.type === "integer") return wholeNumber(type);
  return { string: "text", boolean: "true or false" }[type.type] ?? "text or list of texts";
}

function wholeNumber({ minimum, exclusiveMinimum, maximum }) {
  const least = minimum ?? exclusiveMinimum + 1;
  const hasMaximum = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
  return `whole number from ${least}${hasMaximum ? ` to ${maximum}` : ""}`;
}
