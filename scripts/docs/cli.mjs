// docs/cli.md: the help of every command.
import { COMMANDS } from "../../dist/cli/table/commands.js";
import { helpOf, overviewOf } from "../../dist/cli/table/help.js";

export function body() {
  const sections = Object.entries(COMMANDS).map(
    ([name, command]) => `## latentkit ${name}\n\n\`\`\`text\n${helpOf(name, command).trim()}\n\`\`\``,
  );
  return `
# Command line

Results go to stdout and everything else to stderr, so \`latentkit render graph.json | xargs …\` works. \`--json\` prints one
event per line instead. \`NO_COLOR\` is respected; \`LATENTKIT_DEBUG=1\` adds stack traces to errors.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | a run failed, or \`verify\` found a difference |
| 2 | bad graph or bad usage, or nothing to verify |
| 3 | bad configuration |
| 130 | interrupted |

\`\`\`text
${overviewOf(COMMANDS).trim()}
\`\`\`

${sections.join("\n\n")}
`;
}
