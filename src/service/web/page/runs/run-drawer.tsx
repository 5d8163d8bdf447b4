import { useState } from "preact/hooks";
import type { ListedRun, RunDetail, RunStart } from "../api.ts";
import { batchOf } from "../batch/plan.ts";
import { Drawer, FactList, Problem, Scroller } from "../parts/components.tsx";
import { addressOf, goTo } from "../parts/route.ts";
import { useLoaded, usePolling, useService } from "../parts/service.ts";
import { STATE_WORDS, titleOf } from "../parts/words.ts";
import { laterOf } from "./live-runs.ts";
import { NodeTimes, type Story, useStory } from "./run-events.tsx";

const POLL_MS = 1000;
/** Characters of an event's data that are shown. */
const MOST_CHARACTERS = 2000;

/** One run: its progress, pictures, what it was started with, times and events. */
export function RunDrawer({
  id,
  listed,
  onRun,
  onClose,
}: {
  id: string;
  /** The run as the list beside knows it. */
  listed: ListedRun | undefined;
  /** Receives each look at the run: list and drawer agree. */
  onRun: (run: RunDetail) => void;
  onClose: () => void;
}) {
  const client = useService();
  const { story, error: storyError } = useStory(id);
  const started = useLoaded<RunStart>(`api/page/run?run_id=${id}`);
  const [own, setOwn] = useState<RunDetail>();
  const [error, setError] = useState<Error>();
  const act = async (work: () => Promise<void>) => {
    try {
      await work();
      setError(undefined);
    } catch (problem) {
      setError(problem as Error);
    }
  };
  const show = (next: RunDetail) => {
    setOwn(next);
    onRun(next);
  };
  const run: RunDetail | undefined = own && { ...own, ...laterOf(own, listed ?? own) };
  const isDone = own?.done === true;
  // an ended run changes no more
  const refresh = async (signal: AbortSignal) => {
    if (!isDone) show(await client.get<RunDetail>(`api/runs/${id}`, signal));
  };
  usePolling(refresh, POLL_MS, [client, id, isDone, story.hasEnded]);
  const cancel = () => act(async () => show(await client.post<RunDetail>(`api/runs/${id}/cancel`)));
  const actions = (
    <>
      {run !== undefined && !run.done && (
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      )}
      {run?.done && (
        <button type="button" class="primary" onClick={() => goTo("runs", "again", id)}>
          Run again
        </button>
      )}
    </>
  );
  return (
    <Drawer
      title={titleOf({ run_id: id, title: started.value?.title ?? listed?.title })}
      actions={actions}
      onClose={onClose}
    >
      <Problem error={error ?? storyError} />
      {run !== undefined && <RunState run={run} story={story} />}
      {run?.status === "running" && story.preview !== undefined && (
        <img class="preview" src={story.preview.url} alt={story.preview.words} />
      )}
      <Pictures id={id} names={run?.done ? present(story.pictures, run) : story.pictures} />
      <StartedWith values={started.value?.values ?? []} />
      <NodeTimes nodes={story.nodes} hasEnded={story.hasEnded || isDone} />
      {run !== undefined && <Facts run={run} />}
      <Events story={story} />
    </Drawer>
  );
}

function RunState({ run, story }: { run: RunDetail; story: Story }) {
  const { done, progress, loading } = story;
  const share = done === undefined ? undefined : `${done.done} of ${done.nodes} nodes`;
  const step = progress && `node ${progress.node}: step ${progress.value} of ${progress.max}`;
  const load = loading && `loading ${loading}`;
  const words = run.done ? [run.error] : [share, step, load];
  return (
    <div class="run-state" role="status">
      <span class={`badge ${run.status}`}>{STATE_WORDS[run.status]}</span>
      <span>{words.filter((word) => word != null).join(", ")}</span>
      {run.status === "running" && (
        <progress aria-label="Progress" max={progress?.max ?? done?.nodes} value={progress?.value ?? done?.done} />
      )}
    </div>
  );
}

/** Names of the pictures that have not been deleted since. */
function present(names: readonly string[], { files, file_count }: RunDetail): readonly string[] {
  // only the first thousand are listed
  if (file_count > files.length) return names;
  const there = new Set(files.map(({ name }) => name));
  return names.filter((name) => there.has(name));
}

function Pictures({ id, names }: { id: string; names: readonly string[] }) {
  const address = useLoaded<{ query: string }>(names.length > 0 ? `api/page/address?run_id=${id}` : undefined);
  if (names.length === 0 || address.value === undefined) return null;
  const { query } = address.value;
  return (
    <ul class="thumbnails" aria-label="Pictures of the run">
      {names.map((name) => (
        <li key={name}>
          <a href={addressOf("pictures", id, name)}>
            <img
              src={`api/runs/${id}/files/${encodeURIComponent(name)}${query && `?${query}`}`}
              alt={name}
              loading="lazy"
            />
          </a>
        </li>
      ))}
    </ul>
  );
}

/** The values that the run was started with. */
function StartedWith({ values }: Pick<RunStart, "values">) {
  if (values.length === 0) return null;
  return (
    <section aria-labelledby="started-with">
      <h3 id="started-with">Started with</h3>
      <FactList rows={values} />
    </section>
  );
}

function Facts({ run }: { run: RunDetail }) {
  const batch = batchOf(run.tags ?? []);
  const time = (text: string | null) => (text === null ? undefined : new Date(text).toLocaleString());
  const rows: [string, string | undefined][] = [
    ["Id", run.run_id],
    ["Session", run.session_key],
    ["Sender", run.name ?? undefined],
    ["Origin", run.origin],
    ["Priority", run.priority ? String(run.priority) : undefined],
    ["Tags", run.tags?.join(", ") || undefined],
    ["Created", time(run.created_at)],
    ["Started", time(run.started_at)],
    ["Ended", time(run.finished_at)],
    ["Error code", run.error_code ?? undefined],
  ];
  return (
    <section aria-labelledby="facts">
      <h3 id="facts">Facts</h3>
      {batch !== undefined && <a href={addressOf("batch", batch)}>Batch {batch}</a>}
      <FactList rows={rows} />
    </section>
  );
}

/** A preview's data would fill the page. */
const cut = (text: string) => (text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text);

function Events({ story: { events } }: { story: Story }) {
  return (
    <details class="events">
      <summary>Events ({events.at(-1)?.id ?? 0})</summary>
      <Scroller label="Events" kind="log">
        <ol>
          {events.map(({ id, event, data }) => (
            <li key={id} value={id}>
              <b>{event}</b> <code>{cut(JSON.stringify(data))}</code>
            </li>
          ))}
        </ol>
      </Scroller>
    </details>
  );
}
