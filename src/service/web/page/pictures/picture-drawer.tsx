import { useEffect, useState } from "preact/hooks";
import type { Inspection, Picture } from "../api.ts";
import { InspectionView, RunInspected } from "../graph/inspection-view.tsx";
import { Drawer, Problem } from "../parts/components.tsx";
import { addressOf, goTo } from "../parts/route.ts";
import { useLoaded, useService } from "../parts/service.ts";
import { byteSize, shortId } from "../parts/words.ts";
import { NodeTimes, useStory } from "../runs/run-events.tsx";

interface Shown {
  /** Address of a blob in this tab. */
  readonly url: string;
  readonly bytes: number;
  readonly inspection?: Inspection;
}

interface PictureDrawerProps {
  readonly runId: string;
  readonly name: string;
  /** First words of its message or prompt. */
  readonly title: string | undefined;
  readonly previous: Picture | undefined;
  readonly next: Picture | undefined;
  readonly onClose: () => void;
}

/** One picture: itself, its receipt, the times of its run, and the graph that it carries. */
export function PictureDrawer({ runId, name, title, previous, next, onClose }: PictureDrawerProps) {
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
  useArrows(previous, next);
  const inspection = shown?.inspection;
  const problem = error ?? address.error;
  const isRead = inspection !== undefined || problem !== undefined;
  // a form is long: what the picture tells comes before it
  const hasForm = inspection?.graph?.text != null;
  const actions = (
    <>
      <Neighbour picture={previous} words="Previous picture" sign="‹" />
      <Neighbour picture={next} words="Next picture" sign="›" />
      {shown !== undefined && (
        <a class="button" href={shown.url} download={name}>
          Save
        </a>
      )}
    </>
  );
  return (
    <Drawer title={title || name} actions={actions} onClose={onClose}>
      <Problem error={problem} />
      {shown !== undefined && (
        <img
          class="picture"
          src={shown.url}
          alt={name}
          onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) => setSize(`${naturalWidth} × ${naturalHeight}`)}
        />
      )}
      <p class="hint">
        {[title && name, size, shown && byteSize(shown.bytes)].filter(Boolean).map((part) => `${part} · `)}
        <a href={addressOf("runs", runId)}>Run {shortId(runId)}</a>
      </p>
      {inspection !== undefined && !hasForm && <RunInspected inspection={inspection} />}
      {inspection !== undefined && <InspectionView inspection={inspection} />}
      {inspection !== undefined && hasForm && <RunInspected inspection={inspection} />}
      {!isRead && <p class="waiting">Reading the picture …</p>}
      {isRead && <NodeTimes nodes={story.nodes} hasEnded={story.hasEnded} />}
    </Drawer>
  );
}

function Neighbour({ picture, words, sign }: { picture: Picture | undefined; words: string; sign: string }) {
  if (picture === undefined) return null;
  return (
    <a class="button icon" aria-label={words} href={pictureAddress(picture)}>
      {sign}
    </a>
  );
}

/** The arrow keys left and right, outside of fields, go to the neighbours. */
function useArrows(previous: Picture | undefined, next: Picture | undefined): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isField =
        event.target instanceof Element && event.target.closest("input, select, textarea, .scroller") !== null;
      const hasModifier = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
      const picture = event.key === "ArrowLeft" ? previous : event.key === "ArrowRight" ? next : undefined;
      if (picture === undefined || isField || hasModifier) return;
      event.preventDefault();
      goTo("pictures", picture.run_id, picture.name);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [previous, next]);
}

const pictureAddress = ({ run_id, name }: Picture) => addressOf("pictures", run_id, name);
