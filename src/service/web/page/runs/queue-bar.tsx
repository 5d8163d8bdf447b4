import { useState } from "preact/hooks";
import { Problem } from "../parts/notice.tsx";
import { usePolling, useService } from "../parts/service.ts";

const POLL_MS = 2000;

interface Queue {
  readonly paused: boolean;
  readonly queued: number;
  readonly running: number;
}

/** Numbers of runs that wait and run, and the switch that lets no further one start. */
export function QueueBar() {
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
        {queue.paused && "Paused: no run starts. "}
        {queue.running} running, {queue.queued} waiting
      </p>
      <button type="button" onClick={change}>
        {queue.paused ? "Resume the queue" : "Pause the queue"}
      </button>
      <Problem error={error} />
    </section>
  );
}
