import { useEffect, useState } from "preact/hooks";
import type { Model } from "../api/types.ts";
import { Empty, Problem } from "../parts/notice.tsx";
import { Scroller } from "../parts/scroller.tsx";
import { useLoaded } from "../parts/service.ts";
import { byteSize } from "../parts/words.ts";

/** Time after which files that were not read yet are asked for again. */
const AGAIN_MS = 2000;

interface Listing {
  readonly has_folders: boolean;
  readonly models: readonly Model[];
  /** Whether the heads of all files have been read. */
  readonly is_complete: boolean;
}

/** The model files of the service. */
export function ModelsView() {
  const [looks, setLooks] = useState(0);
  const { value, error } = useLoaded<Listing>("api/page/models", looks);
  useEffect(() => {
    if (value === undefined || value.is_complete) return;
    const timer = setTimeout(() => setLooks(looks + 1), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [value]);
  const [words, setWords] = useState("");
  const models = (value?.models ?? []).filter(({ name, kind, family = "" }) =>
    `${name} ${kind} ${family}`.toLowerCase().includes(words.trim().toLowerCase()),
  );
  return (
    <div class="view">
      <div class="view-main scrolls">
        <header class="bar">
          <h2>Models</h2>
          <label class="grow">
            <span class="hidden">Search models</span>
            <input
              type="search"
              placeholder="Search by name, folder or family"
              value={words}
              onInput={({ currentTarget }) => setWords(currentTarget.value)}
            />
          </label>
        </header>
        <Problem error={error} />
        {value === undefined && error === undefined && <p class="waiting">Reading the heads of the files …</p>}
        {value !== undefined && models.length === 0 && (
          <Empty title={value.models.length > 0 ? "No model matches." : "No model files."}>
            {!value.has_folders && (
              <p>
                Without a model, latentkit draws placeholders. Start the service with <code>--models DIR</code> to
                render with your own checkpoints.
              </p>
            )}
          </Empty>
        )}
        {models.length > 0 && (
          <Scroller label="Model files" kind="table">
            <table>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Folder</th>
                  <th scope="col">Family</th>
                  <th scope="col">Size</th>
                  <th scope="col">Types</th>
                </tr>
              </thead>
              <tbody>
                {models.map(({ kind, name, family, refusal, bytes, dtypes }) => (
                  <tr key={`${kind}/${name}`}>
                    <th scope="row">{name}</th>
                    <td>{kind}</td>
                    <td>{family ?? <span class="failure">{refusal}</span>}</td>
                    <td>{byteSize(bytes)}</td>
                    <td>{dtypes.join(" ")}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroller>
        )}
      </div>
    </div>
  );
}
