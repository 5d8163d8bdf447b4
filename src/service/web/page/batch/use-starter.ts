import { useState } from "preact/hooks";
import type { Parameter } from "../api/types.ts";
import { axesOf, type FormValues, runsOf, singleValues } from "../parts/form-values.ts";
import { goTo } from "../parts/route.ts";
import { MOST_RUNS, type PlannedRun, planRuns } from "./plan.ts";

export interface Starter {
  /** Starts what a form says, and goes there. */
  start(form: FormValues, parameters: readonly Parameter[]): Promise<void>;
  readonly error: Error | undefined;
  readonly isSending: boolean;
  /** How many of several runs are started. */
  readonly progress: string | undefined;
}

/**
 * Starts the run of a form, or those of all combinations of its values, one after the other, so that they wait in their
 * order. `send` returns the id of the run; its key is the same for a run whose response was lost. The runs before a
 * refused one are started.
 */
export function useStarter(send: (run: PlannedRun, key: string) => Promise<string>): Starter {
  const [error, setError] = useState<Error>();
  const [isSending, setSending] = useState(false);
  const [progress, setProgress] = useState<string>();
  const start = async (form: FormValues, parameters: readonly Parameter[]) => {
    setSending(true);
    setError(undefined);
    try {
      const count = runsOf(form, parameters);
      if (count > MOST_RUNS) throw new Error(`A batch has at most ${MOST_RUNS} runs, these would be ${count}.`);
      const id = crypto.getRandomValues(new Uint32Array(1))[0]!.toString(16).padStart(8, "0");
      let runId = "";
      for (const [index, run] of planRuns(id, singleValues(form, parameters), axesOf(form, parameters)).entries()) {
        runId = await send(run, `batch-${id}-${index}`);
        if (count > 1) setProgress(`${index + 1} of ${count} are started.`);
      }
      if (count === 1) goTo("runs", runId);
      else goTo("batch", id);
    } catch (problem) {
      setError(problem as Error);
    } finally {
      setSending(false);
    }
  };
  return { start, error, isSending, progress };
}
