import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Inspection } from "../api.ts";
import { Problem } from "../parts/components.tsx";
import { useService } from "../parts/service.ts";
import { InspectionView, RunInspected } from "./inspection-view.tsx";

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
  const inspection = opened?.inspection;
  return (
    <section
      class={isOver ? "view over" : "view"}
      aria-label="Graph of a file"
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={onDrop}
    >
      <div class="view-main scrolls">
        <header class="bar">
          <h2 class="grow">{opened === undefined ? "Graph" : opened.file.name}</h2>
          {opened !== undefined && <FileInput kind="button" words="Open another" onFile={open} />}
        </header>
        {opened === undefined && (
          <FileInput kind="drop" words="Drop a picture or a graph here, or choose one." onFile={open}>
            <span class="hint">PNG, WebP, JPEG or AVIF with its graph, or JSON. It is shown but not stored.</span>
          </FileInput>
        )}
        <Problem error={error} />
        {opened !== undefined && inspection === undefined && error === undefined && (
          <p class="waiting">Reading the file …</p>
        )}
        {opened !== undefined && (
          <div class="opened">
            {inspection !== undefined && (
              <div class="opened-run">
                <RunInspected key={opened.file} inspection={inspection} />
              </div>
            )}
            <article class="opened-facts">
              {opened.url !== undefined && <img class="picture" src={opened.url} alt={opened.file.name} />}
              {inspection !== undefined && <InspectionView inspection={inspection} />}
            </article>
          </div>
        )}
      </div>
    </section>
  );
}

/** A label that opens the choice of a file; all of the view takes files that are dropped. */
function FileInput({
  kind,
  words,
  onFile,
  children,
}: {
  kind: "drop" | "button";
  words: string;
  onFile: (file: File | undefined) => Promise<void>;
  children?: ComponentChildren;
}) {
  return (
    <label class={kind}>
      <input
        class={kind === "button" ? "hidden" : undefined}
        type="file"
        accept=".png,.webp,.jpg,.jpeg,.avif,.json,application/json,image/*"
        onChange={({ currentTarget }) => void onFile(currentTarget.files?.[0])}
      />
      <strong>{words}</strong>
      {children}
    </label>
  );
}
