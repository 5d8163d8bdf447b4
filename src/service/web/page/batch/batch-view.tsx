import { useState } from "preact/hooks";
import type { Picture, Run } from "../api.ts";
import { Empty, Problem } from "../parts/components.tsx";
import { addressOf } from "../parts/route.ts";
import { usePolling, useService } from "../parts/service.ts";
import { STATE_WORDS, shortId } from "../parts/words.ts";
import { batchTag, layOutRuns, placeOf } from "./plan.ts";

const POLL_MS = 2000;
const PAGE = 200;

/** Runs that share the tag of a batch, as a grid of their axes. */
export function BatchView({ id }: { id: string }) {
  const client = useService();
  const [runs, setRuns] = useState<readonly Run[]>();
  const [pictures, setPictures] = useState<ReadonlyMap<string, Picture>>(new Map());
  const [error, setError] = useState<Error>();
  const tag = encodeURIComponent(batchTag(id));
  const isDone = runs?.every(({ done }) => done) === true;

  const refresh = async (signal: AbortSignal) => {
    const page = await client.get<{ readonly runs: readonly Run[] }>(`api/runs?tag=${tag}&limit=${PAGE}`, signal);
    setRuns(page.runs);
    const succeeded = page.runs.filter(({ status }) => status === "succeeded").length;
    for (let cursor: string | null = ""; cursor !== null && succeeded > pictures.size; ) {
      const path: string = `api/page/pictures?tag=${tag}&cursor=${encodeURIComponent(cursor)}`;
      const more = await client.get<{ pictures: readonly Picture[]; next_cursor: string | null }>(path, signal);
      // the last one of a run is the first here; a known address stays
      setPictures((known) => new Map([...more.pictures.map((one) => [one.run_id, one] as const).reverse(), ...known]));
      cursor = more.next_cursor;
    }
  };
  usePolling(refresh, POLL_MS, [client, id, isDone, pictures.size]);
  const forEach = async (chosen: readonly Run[], action: "again" | "cancel") => {
    try {
      for (const { run_id } of chosen) await client.post(`api/runs/${run_id}/${action}`);
      const page = await client.get<{ readonly runs: readonly Run[] }>(`api/runs?tag=${tag}&limit=${PAGE}`);
      setRuns(page.runs);
      setError(undefined);
    } catch (problem) {
      setError(problem as Error);
    }
  };

  if (runs === undefined) return <p class="waiting">Loading the batch …</p>;
  const { columns, rows, cells } = layOutRuns(runs);
  const current = [...cells.values()];
  const open = current.filter(({ done }) => !done);
  const failed = current.filter(({ done, status }) => done && status !== "succeeded");
  const succeeded = current.length - open.length - failed.length;
  return (
    <div class="view">
      <div class="view-main scrolls">
        <header class="bar">
          <h2>Batch {id}</h2>
          <p class="grow hint" role="status">
            {succeeded} of {columns.length * rows.length} succeeded
            {failed.length > 0 && `, ${failed.length} failed or cancelled`}
            {open.length > 0 && `, ${open.length} to go`}
          </p>
          {open.length > 0 && (
            <button type="button" onClick={() => forEach(open, "cancel")}>
              Cancel the rest
            </button>
          )}
          {failed.length > 0 && (
            <button type="button" class="primary" onClick={() => forEach(failed, "again")}>
              Resume
            </button>
          )}
        </header>
        <Problem error={error} />
        {runs.length === 0 ? (
          <Empty title="No runs of this batch are left." />
        ) : (
          <table class="grid">
            <thead>
              <tr>
                <td />
                {columns.map((label, column) => (
                  <th key={column} scope="col">
                    {label || "Runs"}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((label, row) => (
                <tr key={row}>
                  <th scope="row">{label || "All"}</th>
                  {columns.map((_, column) => (
                    <td key={column}>
                      <Cell run={cells.get(placeOf(column, row))} pictures={pictures} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </div>
  );
}

function Cell({ run, pictures }: { run: Run | undefined; pictures: ReadonlyMap<string, Picture> }) {
  if (run === undefined) return <span class="hint">Not started</span>;
  const picture = pictures.get(run.run_id);
  if (picture !== undefined) {
    return (
      <a href={addressOf("pictures", run.run_id, picture.name)}>
        <img
          src={picture.url}
          alt={`${run.name ?? ""}: ${picture.name} of run ${shortId(run.run_id)}`}
          loading="lazy"
        />
      </a>
    );
  }
  return (
    <a class="cell" href={addressOf("runs", run.run_id)}>
      <span class={`badge ${run.status}`}>{STATE_WORDS[run.status]}</span>
      {run.error !== null && <span class="failure">{run.error}</span>}
    </a>
  );
}
