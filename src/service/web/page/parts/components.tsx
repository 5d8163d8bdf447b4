import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** A sentence on what went wrong. */
export function Problem({ error }: { error: Error | undefined }) {
  return error === undefined ? null : (
    <p class="problem" role="alert">
      {error.message}
    </p>
  );
}

/** Says what will be here, and what to do for it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Names with their values, one below the other; those without a value are left out. */
export function FactList({ rows }: { rows: readonly (readonly [name: string, value: string | undefined])[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

/** Region that scrolls by itself, also by the keyboard. */
export function Scroller({ label, kind, children }: { label: string; kind: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without the focus, the keyboard could not scroll it
    <section class={`scroller ${kind}`} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

/** Field of words to search for. */
export function SearchBox({
  label,
  hint,
  words,
  onWords,
}: {
  label: string;
  hint: string;
  words: string;
  onWords: (words: string) => void;
}) {
  return (
    <label class="grow">
      <span class="hidden">{label}</span>
      <input
        type="search"
        maxLength={200}
        placeholder={hint}
        value={words}
        onInput={({ currentTarget }) => onWords(currentTarget.value)}
      />
    </label>
  );
}

/** A text once it has not changed for a moment: the service is not asked for each letter. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 300);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** Panel beside a list; on narrow screens it covers the view. Escape closes it and returns the focus. */
export function Drawer({
  title,
  actions,
  onClose,
  children,
}: {
  title: string;
  actions?: ComponentChildren;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    heading.current?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
  };
  return (
    <section class="drawer" aria-label={title} onKeyDown={onKeyDown}>
      <header class="drawer-head">
        <h2 ref={heading} tabIndex={-1}>
          {title}
        </h2>
        {actions}
        <button type="button" class="icon" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </header>
      <div class="drawer-body">{children}</div>
    </section>
  );
}

/** Rows above and below those that are seen. */
const SPARE_ROWS = 6;

/** Options of a `VirtualList`. */
interface VirtualListProps<T> {
  readonly items: readonly T[];
  readonly label: string;
  /** Height of every row, px. */
  readonly rowHeight: number;
  readonly keyOf: (item: T) => string;
  /** Contents of a row: one link or button, which takes the focus. */
  readonly row: (item: T) => ComponentChildren;
  /** Called as the end comes near, and as often as the list changes there. */
  readonly onNearEnd: () => void;
}

/** A list of any length, of which only the rows that are seen are in the document. Arrow keys, Home and End move. */
export function VirtualList<T>({ items, label, rowHeight, keyOf, row, onNearEnd }: VirtualListProps<T>) {
  const list = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 600 });
  const [wanted, setWanted] = useState<number>();
  const first = Math.max(0, Math.floor(seen.top / rowHeight) - SPARE_ROWS);
  const last = Math.min(items.length, Math.ceil((seen.top + seen.height) / rowHeight) + SPARE_ROWS);

  useLayoutEffect(() => {
    const measure = () => {
      const { scrollTop, clientHeight } = list.current!;
      setSeen({ top: scrollTop, height: clientHeight });
    };
    const observer = new ResizeObserver(measure);
    observer.observe(list.current!);
    list.current!.addEventListener("scroll", measure, { passive: true });
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (last >= items.length - SPARE_ROWS) onNearEnd();
  }, [last, items]);

  // the row is in the document only once the list has scrolled to it
  useEffect(() => {
    if (wanted === undefined) return;
    const target = list.current!.querySelector<HTMLElement>(`[aria-posinset="${wanted + 1}"] :is(a, button)`);
    if (target === null) return;
    target.focus();
    setWanted(undefined);
  });

  const onKeyDown = (event: KeyboardEvent) => {
    const position = Number((event.target as Element).closest("[aria-posinset]")?.getAttribute("aria-posinset")) - 1;
    const steps: Record<string, number> = {
      ArrowDown: position + 1,
      ArrowUp: position - 1,
      Home: 0,
      End: items.length - 1,
    };
    const next = steps[event.key];
    if (position < 0 || next === undefined || next < 0 || next >= items.length) return;
    event.preventDefault();
    const view = list.current!;
    const top = next * rowHeight;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + rowHeight > view.scrollTop + view.clientHeight) view.scrollTop = top + rowHeight - view.clientHeight;
    setWanted(next);
  };

  const above = first * rowHeight;
  const below = (items.length - last) * rowHeight;
  return (
    <div ref={list} class="virtual">
      <ul aria-label={label} onKeyDown={onKeyDown} style={{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}>
        {items.slice(first, last).map((item, i) => (
          <li
            key={keyOf(item)}
            aria-setsize={items.length}
            aria-posinset={first + i + 1}
            style={{ height: `${rowHeight}px` }}
          >
            {row(item)}
          </li>
        ))}
      </ul>
    </div>
  );
}
