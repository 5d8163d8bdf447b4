import { useEffect, useState } from "preact/hooks";
import type { Inspection } from "../api/types.ts";
import { InspectionView } from "../graph/inspection-view.tsx";
import { Drawer } from "../parts/drawer.tsx";
import { Problem } from "../parts/notice.tsx";
import { addressOf } from "../parts/route.ts";
import { useLoaded, useService } from "../parts/service.ts";
import { byteSize, shortId } from "../parts/words.ts";
import { NodeTimes } from "../runs/node-times.tsx";
import { useStory } from "../runs/run-events.ts";

interface Shown {
  /** Address of a blob in this tab. */
  readonly url: string;
  readonly bytes: number;
  readonly inspection?: Inspection;
}

/** One picture: itself, its receipt, the times of its run, and the graph that it carries. */
export function PictureDrawer({ runId, name, onClose }: { runId: string; name: string; onClose: () => void }) {
  const client = useService();
  const address = useLoaded<{ query: string }>(`api/page/address?run_id=${encodeURIComponent(runId)}`);
  const query = address.value?.query;
  const { story } = useStory(runId);
  const [shown, setShown] = useState<Shown>();
  const [size, setSize] = useState<string>();
  const [error, setError] = useState<Error>();
  useEffect(() => {
    if (query === undefined) return;
    const stop = new AbortController();
    let url: string | undefined;
    const show = async () => {
      const path = `api/runs/${encodeURIComponent(runId)}/files/${encodeURIComponent(name)}${query && `?${query}`}`;
      const blob = await (await client.open(path, { signal: stop.signal })).blob();
      url = URL.createObjectURL(blob);
      setShown({ url, bytes: blob.size });
      const inspection = await client.post<Inspection>("api/page/inspect", blob, stop.signal);
      setShown({ url, bytes: blob.size, inspection });
    };
    show().catch((problem: Error) => !stop.signal.aborted && setError(problem));
    return () => {
      stop.abort();
      if (url !== undefined) URL.revokeObjectURL(url);
    };
  }, [client, query, runId, name]);
  const download = shown !== undefined && (
    <a class="button" href={shown.url} download={name}>
      Save
    </a>
  );
  return (
    <Drawer title={name} actions={download} onClose={onClose}>
      <Problem error={error ?? address.error} />
      {shown !== undefined && (
        <img
          class="picture"
          src={shown.url}
          alt={name}
          onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) => setSize(`${naturalWidth} × ${naturalHeight}`)}
        />
      )}
      <p class="hint">
        {[size, shown && byteSize(shown.bytes)].filter(Boolean).join(" · ")}{" "}
        <a href={addressOf("runs", runId)}>Run {shortId(runId)}</a>
      </p>
      {shown?.inspection !== undefined && <InspectionView inspection={shown.inspection} />}
      <NodeTimes nodes={story.nodes} />
    </Drawer>
  );
}
