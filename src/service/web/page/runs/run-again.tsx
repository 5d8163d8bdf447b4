import { useState } from "preact/hooks";
import type { Parameter, RunForm } from "../api/types.ts";
import type { PlannedRun } from "../batch/plan.ts";
import { useStarter } from "../batch/use-starter.ts";
import { sendGraph } from "../graph/send-graph.ts";
import { Drawer } from "../parts/drawer.tsx";
import { FactList } from "../parts/fact-list.tsx";
import { Fields } from "../parts/fields.tsx";
import { Form, StartBar } from "../parts/form.tsx";
import { type FormValues, runsOf, type Values } from "../parts/form-values.ts";
import { Problem, Waiting } from "../parts/notice.tsx";
import { useLoaded, useService } from "../parts/service.ts";
import { MESSAGE } from "./new-run.tsx";

/** Form with the values that a run was started with, which starts it again as it was or with others. */
export function RunAgain({ id, onClose }: { id: string; onClose: () => void }) {
  const { value, error } = useLoaded<RunForm>(`api/page/form?run_id=${encodeURIComponent(id)}`);
  return (
    <Drawer title="Run again" onClose={onClose}>
      <Problem error={error} />
      <Waiting isOver={(value ?? error) !== undefined}>Loading the form …</Waiting>
      {value !== undefined && <AgainForm id={id} from={value} />}
    </Drawer>
  );
}

function AgainForm({ id, from }: { id: string; from: RunForm }) {
  const client = useService();
  const [form, setForm] = useState<FormValues>({ values: from.values, several: {} });
  const hasOwnGraph = from.text !== null;
  const parameters = (from.parameters ?? [MESSAGE]).filter(
    ({ key, named, role }: Parameter) => !hasOwnGraph || named || role !== undefined || Object.hasOwn(from.values, key),
  );
  const send = async ({ values, tags, name }: PlannedRun, key: string): Promise<string> => {
    const isSame = tags.length === 0 && isEqual(values, from.values);
    if (from.text !== null && !isSame) return sendGraph(client, from.text, values, tags);
    const message = from.parameters === null ? String(values.message ?? "") : JSON.stringify(values);
    // other values have no place in the batch of the earlier run
    const body = isSame ? undefined : { message, tags, ...(tags.length > 0 && { name, idempotencyKey: key }) };
    return (await client.post<{ run_id: string }>(`api/runs/${id}/again`, body)).run_id;
  };
  const { start, error, isSending, progress } = useStarter(send);
  const count = runsOf(form, parameters);
  const isFixed = !hasOwnGraph && from.parameters?.some(({ named }) => !named);
  return (
    <Form isSending={isSending} onSend={() => start(form, parameters)}>
      <Problem error={error} />
      {isFixed ? (
        <FactList rows={parameters.map(({ key, title }) => [title, from.values[key]] as const)} />
      ) : (
        <Fields parameters={parameters} form={form} onChange={setForm} />
      )}
      <StartBar count={count} isSending={isSending} progress={progress} />
    </Form>
  );
}

function isEqual(a: Values, b: Values): boolean {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => String(a[key] ?? "") === String(b[key] ?? ""));
}
