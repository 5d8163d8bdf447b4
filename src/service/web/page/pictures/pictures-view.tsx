import { useEffect, useRef, useState } from "preact/hooks";
import type { Picture } from "../api.ts";
import { Empty, Problem, SearchBox, useSettled } from "../parts/components.tsx";
import { addressOf, goTo } from "../parts/route.ts";
import { ago, shortId } from "../parts/words.ts";
import { PictureDrawer } from "./picture-drawer.tsx";
import { Compare, SelectionBar } from "./selection.tsx";
import { keyOf, usePictures } from "./use-pictures.ts";

/** Pictures of all runs, newest first, or those that a filter finds; the one that is open, and those that are selected. */
export function PicturesView({ selected: [runId, name] }: { selected: readonly string[] }) {
  const [filter, setFilter] = useState(NO_FILTER);
  const words = useSettled(filter.words.trim());
  const { pictures, hasOlder, error, canDelete, loadOlder, leaveOut } = usePictures(filterQuery({ ...filter, words }));
  const [chosen, setChosen] = useState<readonly Picture[]>([]);
  const [isComparing, setComparing] = useState(false);
  const models = useModels(pictures ?? [], filter);
  const toggle = (picture: Picture) =>
    setChosen((chosen) => {
      const others = chosen.filter((other) => keyOf(other) !== keyOf(picture));
      return others.length < chosen.length ? others : [...chosen, picture];
    });
  const keys = new Set(chosen.map(keyOf));
  const [before, after] = chosen;
  const isOpen = runId !== undefined && name !== undefined;
  const at =
    isOpen && pictures !== undefined ? pictures.findIndex((one) => one.run_id === runId && one.name === name) : -1;
  const isAtEnd = at >= 0 && at + 1 === pictures?.length;
  useEffect(() => {
    if (isAtEnd) void loadOlder();
  }, [isAtEnd]);
  return (
    <div class={isOpen ? "view has-drawer" : "view"}>
      <div class="view-main scrolls">
        <header class="bar wraps">
          <h2>Pictures</h2>
          <FilterBar filter={filter} models={models} onChange={(change) => setFilter({ ...filter, ...change })} />
        </header>
        {chosen.length > 0 && (
          <SelectionBar
            chosen={chosen}
            isComparing={isComparing}
            onCompare={() => setComparing(!isComparing)}
            onClear={() => setChosen([])}
            onDeleted={
              canDelete
                ? (deleted) => {
                    leaveOut(deleted);
                    setChosen((chosen) => chosen.filter((one) => !deleted.includes(one)));
                    if (deleted.some((one) => one.run_id === runId && one.name === name)) goTo("pictures");
                  }
                : undefined
            }
          />
        )}
        <Problem error={error} />
        {isComparing && chosen.length === 2 && (
          <Compare key={`${keyOf(before!)} ${keyOf(after!)}`} before={before!} after={after!} />
        )}
        {pictures === undefined ? (
          <p class="waiting">Loading pictures …</p>
        ) : pictures.length === 0 && !hasOlder ? (
          <Nothing filter={filter} />
        ) : (
          <ul class="gallery" aria-label="Pictures">
            {pictures.map((picture) => (
              <Tile
                key={keyOf(picture)}
                picture={picture}
                isChosen={keys.has(keyOf(picture))}
                isOpen={picture.run_id === runId && picture.name === name}
                onToggle={() => toggle(picture)}
              />
            ))}
          </ul>
        )}
        {hasOlder && <Older onSeen={loadOlder} />}
      </div>
      {isOpen && (
        <PictureDrawer
          key={`${runId}/${name}`}
          runId={runId}
          name={name}
          title={pictures?.[at]?.title}
          previous={at > 0 ? pictures?.[at - 1] : undefined}
          next={at < 0 ? undefined : pictures?.[at + 1]}
          onClose={() => goTo("pictures")}
        />
      )}
    </div>
  );
}

function Tile({
  picture,
  isChosen,
  isOpen,
  onToggle,
}: {
  picture: Picture;
  isChosen: boolean;
  isOpen: boolean;
  onToggle: () => void;
}) {
  const { run_id, name, title, url, created_at } = picture;
  const words = title || `${name} of run ${shortId(run_id)}`;
  return (
    <li class={isChosen ? "chosen" : undefined}>
      <a href={addressOf("pictures", run_id, name)} aria-current={isOpen ? "true" : undefined}>
        <img src={url} alt="" loading="lazy" />
        <span class="caption">{words}</span>
        <span class="hint">{ago(created_at, Date.now())}</span>
      </a>
      <input type="checkbox" checked={isChosen} aria-label={`Select ${words}`} onChange={onToggle} />
    </li>
  );
}

function Nothing({ filter: { words, model, from, to } }: { filter: PictureFilter }) {
  if (`${words}${model}${from}${to}` !== "") {
    return (
      <Empty title="No picture matches.">
        <p>Choose other words, another model or other days.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No pictures yet.">
      <p>Each picture that a run saves appears here.</p>
    </Empty>
  );
}

/** Names of the models that pictures have been seen of, and of the filter's own. */
function useModels(pictures: readonly Picture[], { model }: PictureFilter): readonly string[] {
  const seen = useRef(new Set<string>());
  for (const picture of pictures) for (const name of picture.models) seen.current.add(name);
  if (model !== "") seen.current.add(model);
  return [...seen.current].sort();
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

/** Conditions of the pictures that are shown; "" for all. */
interface PictureFilter {
  readonly words: string;
  readonly model: string;
  /** Days, as date fields have them. */
  readonly from: string;
  readonly to: string;
}

const NO_FILTER: PictureFilter = { words: "", model: "", from: "", to: "" };

/** Query of a filter, with the days of this time zone. */
function filterQuery({ words, model, from, to }: PictureFilter): string {
  const start = midnight(from, 0);
  const end = midnight(to, 1);
  return new URLSearchParams({
    ...(words && { search: words }),
    ...(model && { model }),
    ...(start !== undefined && { from: String(start) }),
    ...(end !== undefined && { to: String(end) }),
  }).toString();
}

/** Beginning of a day, or of one after it, ms; undefined if there is no such day. */
function midnight(day: string, later: number): number | undefined {
  const [, year, month, date] = /^(\d{4,6})-(\d\d)-(\d\d)$/.exec(day) ?? [];
  return year === undefined ? undefined : new Date(Number(year), Number(month) - 1, Number(date) + later).getTime();
}

/** Fields of a filter; `models`: the names that can be chosen. */
function FilterBar({
  filter,
  models,
  onChange,
}: {
  filter: PictureFilter;
  models: readonly string[];
  onChange: (change: Partial<PictureFilter>) => void;
}) {
  return (
    <>
      <SearchBox
        label="Search pictures"
        hint="Search by prompt, session, tag, model or seed"
        words={filter.words}
        onWords={(words) => onChange({ words })}
      />
      <label>
        <span class="hidden">Model</span>
        <select value={filter.model} onChange={({ currentTarget }) => onChange({ model: currentTarget.value })}>
          <option value="">All models</option>
          {models.map((model) => (
            <option key={model} value={model}>
              {model}
            </option>
          ))}
        </select>
      </label>
      <div class="days">
        <Day label="From" value={filter.from} onChange={(from) => onChange({ from })} />
        <Day label="To" value={filter.to} onChange={(to) => onChange({ to })} />
      </div>
    </>
  );
}

function Day({ label, value, onChange }: { label: string; value: string; onChange: (day: string) => void }) {
  return (
    <label class="day">
      <span class="hint">{label}</span>
      <input type="date" value={value} onInput={({ currentTarget }) => onChange(currentTarget.value)} />
    </label>
  );
}
