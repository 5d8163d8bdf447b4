import type { Client } from "../api/client.ts";
import type { Values } from "../parts/form-values.ts";

// decision 299
/** Runs a graph, given as JSON, with values put in; returns the id of the run. */
export async function sendGraph(
  client: Client,
  text: string,
  values: Values,
  tags: readonly string[],
): Promise<string> {
  // as texts all the way: parsed here, long seeds would lose digits
  const body = new Blob([`{"graph":${text},"values":${JSON.stringify(values)}}`]);
  const filled = await client.open("api/page/fill", { method: "POST", body });
  const job = new Blob([await filled.arrayBuffer()], { type: "application/json" });
  const query = new URLSearchParams(tags.map((tag) => ["tag", tag]));
  const response = await client.open(`api/v2/jobs${tags.length === 0 ? "" : `?${query}`}`, {
    method: "POST",
    body: job,
  });
  return ((await response.json()) as { id: string }).id;
}
