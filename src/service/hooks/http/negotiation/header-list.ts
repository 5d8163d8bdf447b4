/** Elements of a header that is a list; commas within quoted strings separate nothing. */
export const headerList = (value: string): string[] => value.match(/(?:[^,"]|"(?:\\.|[^"\\])*"?)+/g) ?? [];
