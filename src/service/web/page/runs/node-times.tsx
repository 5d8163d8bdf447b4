import { duration } from "../parts/words.ts";
import type { NodeTime } from "./run-events.ts";

/** The time of each node of a run, as a table. `hasEnded`: a node that has not finished runs no more. */
export function NodeTimes({ nodes, hasEnded }: { nodes: readonly NodeTime[]; hasEnded: boolean }) {
  if (nodes.length === 0) return null;
  const longest = Math.max(1, ...nodes.map(({ ms = 0 }) => ms));
  return (
    <section aria-labelledby="times">
      <h3 id="times">Times</h3>
      <table class="times">
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">Time</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map(({ node, type, ms, error }) => (
            <tr key={node}>
              <td>
                {type} <code>{node}</code>
                {error !== undefined && <span class="failure">{error}</span>}
              </td>
              <td>
                {ms !== undefined
                  ? duration(ms)
                  : error !== undefined
                    ? "failed"
                    : hasEnded
                      ? "not finished"
                      : "running"}
                <span class="time-bar" style={{ width: `${(100 * (ms ?? 0)) / longest}%` }} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
