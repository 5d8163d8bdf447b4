// docs/cli.md: the help of every command, as it prints it.
import { main } from "../../dist/cli/main.js";

export async function body() {
  const overview = await help("--help");
  const commands = [...overview.matchAll(/^ {2}latentkit (\w+)/gm)].map(([, name]) => name);
  const sections = [];
  for (const name of commands)
    sections.push(`## latentkit ${name}\n\n\`\`\`text\n${(await help(name, "--help")).trim()}\n\`\`\``);
  return `
# Command line

Results go to stdout, everything else to stderr, so that \`latentkit render graph.json | xargs …\` works. \`--json\` prints one
event per line instead. \`NO_COLOR\` is respected; \`LATENTKIT_DEBUG=1\` adds stack traces to errors.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | a run failed, or \`verify\` found a difference |
| 2 | bad graph or bad usage, or nothing to verify |
| 3 | bad configuration |
| 130 | interrupted |

\`\`\`text
${overview.trim()}
\`\`\`

${sections.join("\n\n")}
`;
}

async function help(...args) {
  let text = "";
  const print = (chunk) => {
    text += chunk;
  };
  await main(args, { out: print, err: print, isTerminal: false, columns: 80, color: false, env: {} });
  return text;
}
