import { main } from "#src/cli/main.js";

/** Runs the command line in this process, without a terminal. */
export async function runHere(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await main(args, {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    isTerminal: false,
    columns: 80,
    color: false,
    env: {},
  });
  return { code, out, err };
}
