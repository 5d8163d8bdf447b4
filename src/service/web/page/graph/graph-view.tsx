import { useEffect, useRef, useState } from "preact/hooks";
import type { Inspection } from "../api/types.ts";
import { Problem } from "../parts/notice.tsx";
import { useService } from "../parts/service.ts";
import { InspectionView } from "./inspection-view.tsx";

/** Largest file that the service inspects. */
const MOST_BYTES = 32 * 2 ** 20;

interface Opened {
  readonly file: File;
  /** Address of the picture in this tab; absent for JSON. */
  readonly url?: string;
  readonly inspection?: Inspection;
}

/** Shows the graph of a file that is dropped or chosen: a picture, or JSON. */
export function GraphView() {
  const client = useService();
  const [opened, setOpened] = useState<Opened>();
  const [error, setError] = useState<Error>();
  const [isOver, setOver] = useState(false);
  const current = useRef<AbortController>();
  const open = async (file: File | undefined) => {
    if (file === undefined) return;
    current.current?.abort();
    const stop = new AbortController();
    current.current = stop;
    setError(undefined);
    const url = file.type.startsWith("image/") ? URL.createObjectURL(file) : undefined;
    setOpened({ file, url });
    try {
      if (file.size > MOST_BYTES) throw new Error(`${file.name} is too large: at most 32 MiB can be opened.`);
      const inspection = await client.post<Inspection>("api/page/inspect", file, stop.signal);
      setOpened({ file, url, inspection });
    } catch (problem) {
      if (!stop.signal.aborted) setError(problem as Error);
    }
  };
  useEffect(() => () => current.current?.abort(), []);
  useEffect(
    () => () => {
      if (opened?.url !== undefined) URL.revokeObjectURL(opened.url);
    },
    [opened?.url],
  );
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void open(event.dataTransfer?.files[0]);
  };
  return (
    <div class="view">
      <div class="view-main scrolls">
        <header class="bar">
          <h2>Graph</h2>
        </header>
        <label
          class={isOver ? "drop over" : "drop"}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={onDrop}
        >
          <input
            type="file"
            accept=".png,.webp,.jpg,.jpeg,.avif,.json,application/json,image/*"
            onChange={({ currentTarget }) => void open(currentTarget.files?.[0])}
          />
          <strong>Drop a picture or a graph here, or choose one.</strong>
          <span class="hint">PNG, WebP, JPEG or AVIF with its graph, or JSON. It is shown, and stored nowhere.</span>
        </label>
        <Problem error={error} />
        {opened !== undefined && (
          <article class="opened">
            <h3>{opened.file.name}</h3>
            {opened.url !== undefined && <img class="picture" src={opened.url} alt={opened.file.name} />}
            {opened.inspection === undefined && error === undefined && <p class="waiting">Reading the file …</p>}
            {opened.inspection !== undefined && <InspectionView inspection={opened.inspection} />}
          </article>
        )}
      </div>
    </div>
  );
}
