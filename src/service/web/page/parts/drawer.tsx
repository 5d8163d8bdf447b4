import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

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
