import { SearchBox } from "../parts/search-box.tsx";

/** Conditions of the pictures that are shown; "" for all. */
export interface PictureFilter {
  readonly words: string;
  readonly model: string;
  /** Days, as date fields have them. */
  readonly from: string;
  readonly to: string;
}

export const NO_FILTER: PictureFilter = { words: "", model: "", from: "", to: "" };

/** Query of a filter, with the days of this time zone. */
export function queryOf({ words, model, from, to }: PictureFilter): string {
  const start = midnight(from, 0);
  const end = midnight(to, 1);
  return new URLSearchParams({
    ...(words && { search: words }),
    ...(model && { model }),
    ...(start !== undefined && { from: String(start) }),
    ...(end !== undefined && { to: String(end) }),
  }).toString();
}

/** Beginning of a day, or of one after it, ms; undefined where there is no day. */
function midnight(day: string, later: number): number | undefined {
  const [, year, month, date] = /^(\d{4,6})-(\d\d)-(\d\d)$/.exec(day) ?? [];
  return year === undefined ? undefined : new Date(Number(year), Number(month) - 1, Number(date) + later).getTime();
}

/** Fields of a filter; `models`: the names that can be chosen. */
export function FilterBar({
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
