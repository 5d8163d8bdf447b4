import type { ComponentChildren } from "preact";

/** Region that scrolls by itself, also by the keyboard. */
export function Scroller({ label, kind, children }: { label: string; kind: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without the focus, the keyboard could not scroll it
    <section class={`scroller ${kind}`} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
