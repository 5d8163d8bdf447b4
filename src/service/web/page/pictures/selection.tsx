import { useState } from "preact/hooks";
import type { Picture } from "../api.ts";
import { Problem } from "../parts/components.tsx";
import { useService } from "../parts/service.ts";
import { shortId } from "../parts/words.ts";
import { downloadAll } from "./download.ts";

/** Actions on the selected pictures. */
export function SelectionBar({
  chosen,
  isComparing,
  onCompare,
  onClear,
  onDeleted,
}: {
  chosen: readonly Picture[];
  isComparing: boolean;
  onCompare: () => void;
  onClear: () => void;
  /** Receives the deleted ones; absent if the service does not delete any. */
  onDeleted: ((deleted: readonly Picture[]) => void) | undefined;
}) {
  const client = useService();
  const [loaded, setLoaded] = useState<number>();
  const [error, setError] = useState<Error>();
  const download = async () => {
    setError(undefined);
    setLoaded(0);
    try {
      await downloadAll(client, chosen, setLoaded);
    } catch (problem) {
      setError(problem as Error);
    } finally {
      setLoaded(undefined);
    }
  };
  return (
    <section class="selection" aria-label="Selection">
      <p role="status">
        {loaded === undefined ? `${chosen.length} selected` : `${loaded} of ${chosen.length} are loaded.`}
        {isComparing && chosen.length !== 2 && ". Select two pictures to compare."}
      </p>
      <button type="button" aria-pressed={isComparing} onClick={onCompare}>
        Compare
      </button>
      <button type="button" disabled={loaded !== undefined} onClick={download}>
        Download
      </button>
      {onDeleted !== undefined && (
        <Delete key={chosen.length} chosen={chosen} onDeleted={onDeleted} onError={setError} />
      )}
      <button type="button" onClick={onClear}>
        Clear
      </button>
      <Problem error={error} />
    </section>
  );
}

/** Deletes pictures and their files, when it is pressed twice. */
function Delete({
  chosen,
  onDeleted,
  onError,
}: {
  chosen: readonly Picture[];
  onDeleted: (deleted: readonly Picture[]) => void;
  onError: (error: Error | undefined) => void;
}) {
  const client = useService();
  const [isAsking, setAsking] = useState(false);
  const remove = async () => {
    if (!isAsking) return setAsking(true);
    setAsking(false);
    onError(undefined);
    const deleted: Picture[] = [];
    try {
      for (const picture of chosen) {
        const query = new URLSearchParams({ run_id: picture.run_id, name: picture.name });
        await client.open(`api/page/picture?${query}`, { method: "DELETE" });
        deleted.push(picture);
      }
    } catch (problem) {
      onError(problem as Error);
    }
    onDeleted(deleted);
  };
  const count = chosen.length === 1 ? "1 picture" : `${chosen.length} pictures`;
  return (
    <button type="button" class={isAsking ? "danger" : undefined} onClick={remove} onBlur={() => setAsking(false)}>
      {isAsking ? `Permanently delete ${count} and ${chosen.length === 1 ? "its file" : "their files"}` : "Delete"}
    </button>
  );
}

interface Size {
  readonly width: number;
  readonly height: number;
}

const NOTHING: Size = { width: 0, height: 0 };

/** Two pictures at one scale, centred one over the other, with a slider between them. */
export function Compare({ before, after }: { before: Picture; after: Picture }) {
  const [share, setShare] = useState(50);
  const [sizes, setSizes] = useState<readonly [Size, Size]>([NOTHING, NOTHING]);
  // a picture's own size is the same however it is shown
  const measure = (index: 0 | 1) => (event: Event) => {
    const { naturalWidth: width, naturalHeight: height } = event.currentTarget as HTMLImageElement;
    setSizes(([first, second]) => (index === 0 ? [{ width, height }, second] : [first, { width, height }]));
  };
  const stage = {
    width: Math.max(1, sizes[0].width, sizes[1].width),
    height: Math.max(1, sizes[0].height, sizes[1].height),
  };
  const styleOf = ({ width, height }: Size) => ({
    width: `${(100 * width) / stage.width}%`,
    height: `${(100 * height) / stage.height}%`,
  });
  return (
    <figure class="compare">
      <div class="compare-stage" style={{ "--share": `${share}%`, "--ratio": `${stage.width / stage.height}` }}>
        <div class="compare-layer">
          <img src={before.url} alt={`Left: ${nameOf(before)}`} style={styleOf(sizes[0])} onLoad={measure(0)} />
        </div>
        <div class="compare-layer compare-after">
          <img src={after.url} alt={`Right: ${nameOf(after)}`} style={styleOf(sizes[1])} onLoad={measure(1)} />
        </div>
        <input
          type="range"
          min={0}
          max={100}
          value={share}
          aria-label="Share of the left picture"
          onInput={({ currentTarget }) => setShare(Number(currentTarget.value))}
        />
      </div>
      <figcaption>
        <Caption picture={before} size={sizes[0]} />
        <Caption picture={after} size={sizes[1]} />
      </figcaption>
    </figure>
  );
}

function Caption({ picture, size: { width, height } }: { picture: Picture; size: Size }) {
  return (
    <span>
      {picture.title || nameOf(picture)}
      {width > 0 && ` · ${width} × ${height}`}
    </span>
  );
}

const nameOf = ({ run_id, name }: Picture) => `${name} of run ${shortId(run_id)}`;
