import { useEffect, useState } from "preact/hooks";
import { followRun, isLast, type Progress, type RunEvent } from "../api.ts";
import { useService } from "../parts/service.ts";
import { duration } from "../parts/words.ts";

/** Most events that are listed; of earlier ones the sums below remain. */
const MOST_EVENTS = 500;

/** A node of a run: how long it took, or that it runs. */
interface NodeTime {
  readonly node: string;
  readonly type: string;
  readonly ms?: number;
  readonly error?: string;
}

/** A run as its events tell it. */
export interface Story {
  readonly events: readonly RunEvent[];
  readonly nodes: readonly NodeTime[];
  readonly progress?: Progress;
  /** The newest preview of a step. */
  readonly preview?: { readonly url: string; readonly words: string };
  readonly pictures: readonly string[];
  /** Finished nodes, of all. */
  readonly done?: { readonly done: number; readonly nodes: number };
  /** The network that is being loaded. */
  readonly loading?: string;
  /** Whether its last event has arrived. */
  readonly hasEnded: boolean;
}

const START: Story = { events: [], nodes: [], pictures: [], hasEnded: false };

/** Follows a run while it is shown, from its first event. */
export function useStory(runId: string): { readonly story: Story; readonly error?: Error } {
  const client = useService();
  const [story, setStory] = useState(START);
  const [error, setError] = useState<Error>();
  useEffect(() => {
    const stop = new AbortController();
    setStory(START);
    setError(undefined);
    let arrived: RunEvent[] = [];
    let frame = 0;
    // events come faster than a screen shows them
    const show = () => {
      const events = arrived;
      arrived = [];
      frame = 0;
      setStory((story) => events.reduce(tell, story));
    };
    const onEvent = (event: RunEvent) => {
      arrived.push(event);
      if (frame === 0) frame = requestAnimationFrame(show);
    };
    followRun(client, runId, onEvent, stop.signal).catch((problem: Error) => !stop.signal.aborted && setError(problem));
    return () => {
      stop.abort();
      cancelAnimationFrame(frame);
    };
  }, [client, runId]);
  return { story, error };
}

function tell(story: Story, event: RunEvent): Story {
  const events = [...story.events, event].slice(-MOST_EVENTS);
  const { data } = event;
  const node = String(data.node ?? "");
  const type = String(data.class_type ?? "");
  switch (event.event) {
    case "node_start":
      return { ...story, events, nodes: withNode(story.nodes, { node, type }) };
    case "node_done": {
      const done = { done: Number(data.done), nodes: Number(data.nodes) };
      return {
        ...story,
        events,
        done,
        progress: undefined,
        nodes: withNode(story.nodes, { node, type, ms: Number(data.ms) }),
      };
    }
    case "node_error":
      return { ...story, events, nodes: withNode(story.nodes, { node, type, error: String(data.message) }) };
    case "progress":
      return { ...story, events, progress: { value: Number(data.value), max: Number(data.max), node } };
    case "preview": {
      const words = `Preview of node ${node}, step ${data.value} of ${data.max}`;
      return { ...story, events, preview: { url: String(data.url), words } };
    }
    case "network":
      // a released one goes in the middle of a load
      return data.state === "released"
        ? { ...story, events }
        : { ...story, events, loading: data.state === "loading" ? String(data.network) : undefined };
    case "image":
      return { ...story, events, pictures: [...story.pictures, fileName(data)] };
    default:
      return { ...story, events, hasEnded: isLast(event) };
  }
}

/** The last part of the address is the file's name among those of the run. */
const fileName = ({ url, filename }: RunEvent["data"]): string => {
  const last =
    String(url ?? "")
      .split("/")
      .at(-1) ?? "";
  try {
    return decodeURIComponent(last) || String(filename);
  } catch {
    return String(filename);
  }
};

function withNode(nodes: readonly NodeTime[], time: NodeTime): readonly NodeTime[] {
  const isThere = nodes.some(({ node }) => node === time.node);
  return isThere ? nodes.map((other) => (other.node === time.node ? time : other)) : [...nodes, time];
}

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
