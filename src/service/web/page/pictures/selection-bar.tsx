import { useState } from "preact/hooks";
import type { Picture } from "../api/types.ts";
import { Problem } from "../parts/notice.tsx";
import { useService } from "../parts/service.ts";
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
  /** Receives those that have been deleted; absent where the service deletes none. */
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
      {isAsking ? `Delete ${count} and the files for good` : "Delete"}
    </button>
  );
}
