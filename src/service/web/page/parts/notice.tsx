import type { ComponentChildren } from "preact";

/** A sentence on what went wrong. */
export function Problem({ error }: { error: Error | undefined }) {
  return error === undefined ? null : (
    <p class="problem" role="alert">
      {error.message}
    </p>
  );
}

/** Says what is on its way, until it is there or has failed. */
export function Waiting({ isOver, children }: { isOver: boolean; children: ComponentChildren }) {
  return isOver ? null : <p class="waiting">{children}</p>;
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
