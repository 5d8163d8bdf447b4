import type { ComponentChildren } from "preact";

/** A form that Ctrl+Enter, or Cmd+Enter, sends from any of its fields. */
export function Form({
  isSending,
  onSend,
  children,
}: {
  isSending: boolean;
  onSend: () => void;
  children: ComponentChildren;
}) {
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLFormElement }) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (!isSending) event.currentTarget.requestSubmit();
  };
  return (
    <form
      class="form"
      onKeyDown={onKeyDown}
      onSubmit={(event) => {
        event.preventDefault();
        onSend();
      }}
    >
      {children}
    </form>
  );
}

/** Foot of a form, in sight wherever one scrolls: the button that starts its runs, and how many are started. */
export function StartBar({
  count,
  isSending,
  progress,
}: {
  count: number;
  isSending: boolean;
  progress: string | undefined;
}) {
  return (
    <div class="start-bar">
      <button type="submit" class="primary" aria-keyshortcuts="Control+Enter" disabled={isSending}>
        {count === 1 ? "Start" : `Start ${count} runs`}
      </button>
      {progress !== undefined && <p role="status">{progress}</p>}
    </div>
  );
}
