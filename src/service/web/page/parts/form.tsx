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
