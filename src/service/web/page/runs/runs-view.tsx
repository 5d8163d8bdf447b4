import { useState } from "preact/hooks";
import { type ListedRun, type RunDetail, type RunState, STATES } from "../api.ts";
import { Empty, Problem, SearchBox, useSettled, VirtualList } from "../parts/components.tsx";
import { addressOf, goTo } from "../parts/route.ts";
import { usePolling, useService } from "../parts/service.ts";
import { ago, duration, STATE_WORDS, shortId, titleOf } from "../parts/words.ts";
import { useLiveRuns } from "./live-runs.ts";
import { NewRun, RunAgain } from "./new-run.tsx";
import { RunDrawer } from "./run-drawer.tsx";

const ROW_HEIGHT = 60;
/** Stand in an address where the id of a run does otherwise. */
const NEW = "new";
const AGAIN = "again";

/** All runs, live, and the one that is selected. */
export function RunsView({ selected: [selected, ...rest] }: { selected: readonly string[] }) {
  const [state, setState] = useState<RunState>();
  const [words, setWords] = useState("");
  const { list, details, error, loadOlder, note } = useLiveRuns(state, useSettled(words.trim()));
  const hasFilter = state !== undefined || words !== "";
  const close = () => goTo("runs");
  return (
    <div class={selected !== undefined ? "view has-drawer" : "view"}>
      <div class="view-main">
        <header class="bar">
          <h2>Runs</h2>
          <label>
            <span class="hidden">State</span>
            <select
              value={state ?? ""}
              onChange={({ currentTarget }) => setState((currentTarget.value || undefined) as RunState | undefined)}
            >
              <option value="">All states</option>
              {STATES.map((name) => (
                <option key={name} value={name}>
                  {STATE_WORDS[name]}
                </option>
              ))}
            </select>
          </label>
          <SearchBox
            label="Search runs"
            hint="Search by prompt, session, tag, model or seed"
            words={words}
            onWords={setWords}
          />
          <a class="button primary" href={addressOf("runs", NEW)}>
            New run
          </a>
        </header>
        <QueueBar />
        <Problem error={error} />
        {list.runs.length > 0 ? (
          <VirtualList
            items={list.runs}
            label="Runs"
            rowHeight={ROW_HEIGHT}
            keyOf={({ run_id }) => run_id}
            row={(run) => <RunRow run={run} detail={details.get(run.run_id)} isSelected={run.run_id === selected} />}
            onNearEnd={loadOlder}
          />
        ) : list.cursor !== null ? (
          <p class="waiting">{list.cursor === undefined ? "Loading runs …" : "Looking through older runs …"}</p>
        ) : hasFilter ? (
          <Empty title="No run matches.">
            <p>Choose another state, or fewer words.</p>
          </Empty>
        ) : (
          <Empty title="No runs yet.">
            <p>Start one here, or post a message to /hooks/agent.</p>
          </Empty>
        )}
      </div>
      {selected === NEW ? (
        <NewRun key={rest.join("/")} graphName={rest[0]} first={readValues(rest[1])} onClose={close} />
      ) : selected === AGAIN ? (
        <RunAgain key={rest[0]} id={rest[0] ?? ""} onClose={() => goTo("runs", rest[0] ?? "")} />
      ) : (
        selected !== undefined && (
          <RunDrawer
            key={selected}
            id={selected}
            listed={list.runs.find(({ run_id }) => run_id === selected)}
            onRun={note}
            onClose={close}
          />
        )
      )}
    </div>
  );
}

/** Values in an address, as the page itself writes them; none for any other text. */
function readValues(json: string | undefined): Readonly<Record<string, string>> {
  try {
    const entries = Object.entries(JSON.parse(json ?? "{}") as object);
    return Object.fromEntries(entries.filter(([, value]) => typeof value === "string"));
  } catch {
    return {};
  }
}

function RunRow({ run, detail, isSelected }: { run: ListedRun; detail: RunDetail | undefined; isSelected: boolean }) {
  const now = Date.now();
  const progress = detail?.progress;
  const facts = [
    STATE_WORDS[run.status],
    run.name === null || run.name === run.title ? undefined : run.name,
    run.priority ? `priority ${run.priority}` : undefined,
    detail?.queue_position == null ? undefined : `number ${detail.queue_position} in the queue`,
    ago(run.created_at, now),
    run.started_at === null
      ? undefined
      : duration((run.finished_at === null ? now : Date.parse(run.finished_at)) - Date.parse(run.started_at)),
    run.error ?? undefined,
  ];
  return (
    <a class="row" href={addressOf("runs", run.run_id)} aria-current={isSelected ? "true" : undefined}>
      <span class={`dot ${run.status}`} aria-hidden="true" />
      <span class="row-picture">{run.thumbnail !== null && <img src={run.thumbnail} alt="" loading="lazy" />}</span>
      <span class="row-title">{titleOf(run)}</span>
      <span class="row-facts">{facts.filter((fact) => fact !== undefined).join(" · ")}</span>
      {run.status === "running" && (
        <progress aria-label={`Progress of run ${shortId(run.run_id)}`} max={progress?.max} value={progress?.value} />
      )}
    </a>
  );
}

const POLL_MS = 2000;

interface Queue {
  readonly paused: boolean;
  readonly queued: number;
  readonly running: number;
}

/** Numbers of runs that wait and run, and the switch that lets no further one start. */
function QueueBar() {
  const client = useService();
  const [queue, setQueue] = useState<Queue>();
  const [error, setError] = useState<Error>();
  // the list beside it tells what is wrong with the service
  usePolling(async (signal) => setQueue(await client.get<Queue>("api/queue", signal)), POLL_MS, [client]);
  if (queue === undefined) return null;
  const change = async () => {
    try {
      setQueue(await client.post<Queue>(`api/queue/${queue.paused ? "resume" : "pause"}`));
      setError(undefined);
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <section class={queue.paused ? "queue paused" : "queue"} aria-label="Queue">
      <p role="status">
        {queue.paused && "Paused: new runs do not start. "}
        {queue.running} running, {queue.queued} waiting
      </p>
      <button type="button" onClick={change}>
        {queue.paused ? "Resume the queue" : "Pause the queue"}
      </button>
      <Problem error={error} />
    </section>
  );
}
