import { useEffect, useState } from "preact/hooks";

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
