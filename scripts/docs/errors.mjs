// docs/errors.md: the two tables of error codes, with the doc comment of each row.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ERROR_CODES } from "../../dist/base/errors.js";
import { REFUSALS } from "../../dist/service/hooks/hook-error.js";
import { root } from "../setup.mjs";
import { code, table } from "./markdown.mjs";

export function body() {
  const comments = commentsIn("src/base/errors.ts", /^ {2}"([a-z.-]+)":/);
  const codes = Object.entries(ERROR_CODES).map(([name, { comfyType, exit }]) => [
    code(name),
    comments.get(name) ?? missing("src/base/errors.ts", name),
    exit,
    code(comfyType),
  ]);
  const refusals = Object.entries(REFUSALS).map(([kind, refusal]) => [
    code("code" in refusal ? refusal.code : kind),
    refusal.status,
    refusal.sentence,
    "retryAfterSeconds" in refusal ? refusal.retryAfterSeconds : "",
    "code" in refusal ? code(kind) : "",
    "of" in refusal ? refusal.of : "",
    "comfy" in refusal ? `${refusal.comfy.status} ${code(refusal.comfy.code)}` : "",
  ]);
  return `
# Error codes

Every error that latentkit throws on purpose is a \`LatentkitError\`: \`code\` is stable and meant for programs, \`message\` is
one sentence for people, and \`details\` has the facts behind it, if they apply (\`nodeId\`, \`node\`, \`input\`, \`expected\`,
\`received\`, \`suggestion\`, \`unknownClasses\`).

The command line exits with 0 for success, 1 if a run failed, 2 for a bad graph or bad usage, 3 for a bad configuration,
and 130 if it was interrupted. The ComfyUI type is what ComfyUI's clients see for the same failure.

## LatentkitError

${table([["Code", "Meaning", "Exit", "ComfyUI type"], ...codes])}

## Refusals of the hook service

A refused request gets the body \`{ ok: false, error, code, request_id }\`; from the Comfy API it is
\`{ error: { code, message, details } }\`, from ComfyUI's classic API \`{ error: { type, message, details, extra_info }, node_errors }\`.
In a program the error is a \`HookError\` with \`status\` and \`code\`; its \`kind\` distinguishes refusals that share a code.

${table([["Code", "HTTP", "Sentence", "Retry-After (s)", "Kind, if different", "Only at", "At the Comfy API"], ...refusals])}
`;
}

function missing(file, name) {
  throw new Error(`${file}: ${name} has no doc comment, which docs/errors.md shows as its meaning.`);
}

/** Doc comments by the key in the line below them. */
function commentsIn(file, key) {
  const comments = new Map();
  const lines = readFileSync(join(root, file), "utf8").split("\n");
  for (const [index, line] of lines.entries()) {
    const name = key.exec(line)?.[1];
    const comment = /^ *\/\*\* (.*) \*\/$/.exec(lines[index - 1] ?? "")?.[1];
    if (name !== undefined && comment !== undefined) comments.set(name, comment);
  }
  return comments;
}
