import { useEffect, useRef, useState } from "preact/hooks";
import type { Picture } from "../api/types.ts";
import { Empty, Problem } from "../parts/notice.tsx";
import { addressOf, goTo } from "../parts/route.ts";
import { usePolling, useService } from "../parts/service.ts";
import { shortId } from "../parts/words.ts";
import { Compare } from "./compare.tsx";
import { PictureDrawer } from "./picture-drawer.tsx";

const POLL_MS = 4000;

interface PicturePage {
  readonly pictures: readonly Picture[];
  readonly next_cursor: string | null;
}

/** Pictures of all runs, newest first, and the one that is selected, or the two that are compared. */
export function PicturesView({ selected: [runId, name] }: { selected: readonly string[] }) {
  const client = useService();
  const [pictures, setPictures] = useState<readonly Picture[]>();
  const [cursor, setCursor] = useState<string | null>(null);
  const [error, setError] = useState<Error>();
  const [pair, setPair] = useState<readonly Picture[]>([]);
  const load = (after: string | null, signal?: AbortSignal) => {
    const query = new URLSearchParams(after === null ? {} : { cursor: after });
    return client.get<PicturePage>(`api/page/pictures?${query}`, signal);
  };
  const hasOlder = useRef(false);
  const refresh = async (signal: AbortSignal) => {
    try {
      const page = await load(null, signal);
      setPictures((known = []) => merged(page.pictures, known));
      if (!hasOlder.current) setCursor(page.next_cursor);
      setError(undefined);
    } catch (problem) {
      if (!signal.aborted) setError(problem as Error);
    }
  };
  usePolling(refresh, POLL_MS, [client]);
  const loadOlder = async () => {
    if (cursor === null) return;
    try {
      const page = await load(cursor);
      hasOlder.current = true;
      setPictures((known = []) => merged(known, page.pictures));
      setCursor(page.next_cursor);
    } catch (problem) {
      setError(problem as Error);
    }
  };
  const isPaired = (picture: Picture) => pair.some((other) => keyOf(other) === keyOf(picture));
  const toggle = (picture: Picture) =>
    setPair((pair) =>
      isPaired(picture) ? pair.filter((other) => keyOf(other) !== keyOf(picture)) : [...pair, picture].slice(-2),
    );
  const [before, after] = pair;
  const isOpen = runId !== undefined && name !== undefined;
  return (
    <div class={isOpen ? "view has-drawer" : "view"}>
      <div class="view-main scrolls">
        <header class="bar">
          <h2>Pictures</h2>
          <p class="grow hint">{pair.length === 1 ? "Choose another picture to compare." : ""}</p>
          {pair.length > 0 && (
            <button type="button" onClick={() => setPair([])}>
              End comparison
            </button>
          )}
        </header>
        <Problem error={error} />
        {before !== undefined && after !== undefined && <Compare before={before} after={after} />}
        {pictures === undefined ? (
          <p class="waiting">Loading pictures …</p>
        ) : pictures.length === 0 && cursor === null ? (
          <Empty title="No pictures yet.">
            <p>Each picture that a run saves appears here.</p>
          </Empty>
        ) : (
          <ul class="gallery" aria-label="Pictures">
            {pictures.map((picture) => (
              <li key={keyOf(picture)}>
                <a href={addressOf("pictures", picture.run_id, picture.name)}>
                  <img src={picture.url} alt={`${picture.name} of run ${shortId(picture.run_id)}`} loading="lazy" />
                </a>
                <button
                  type="button"
                  aria-pressed={isPaired(picture)}
                  aria-label={`Compare ${picture.name} of run ${shortId(picture.run_id)}`}
                  onClick={() => toggle(picture)}
                >
                  Compare
                </button>
              </li>
            ))}
          </ul>
        )}
        {cursor !== null && <Older onSeen={loadOlder} />}
      </div>
      {isOpen && <PictureDrawer key={`${runId}/${name}`} runId={runId} name={name} onClose={() => goTo("pictures")} />}
    </div>
  );
}

/** Button for older pictures, which presses itself when it is scrolled into view. */
function Older({ onSeen }: { onSeen: () => void }) {
  const button = useRef<HTMLButtonElement>(null);
  const seen = useRef(onSeen);
  seen.current = onSeen;
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) seen.current();
    });
    observer.observe(button.current!);
    return () => observer.disconnect();
  }, [onSeen]);
  return (
    <button ref={button} type="button" class="older" onClick={onSeen}>
      Older pictures
    </button>
  );
}

const keyOf = ({ run_id, name }: Picture) => `${run_id}/${name}`;

/** One list after the other, each picture once; a known address stays, so that the browser keeps its picture. */
function merged(first: readonly Picture[], then: readonly Picture[]): readonly Picture[] {
  const known = new Map(then.map((picture) => [keyOf(picture), picture]));
  const front = first.map((picture) => known.get(keyOf(picture)) ?? picture);
  const keys = new Set(front.map(keyOf));
  return [...front, ...then.filter((picture) => !keys.has(keyOf(picture)))];
}
