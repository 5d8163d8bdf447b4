// PostgreSQL takes neither NUL nor a lone surrogate in a text. Escaped as in JSON, any text can be stored, and a usual
// one looks as it is.

export const toStored = (text: string): string => JSON.stringify(text).slice(1, -1);

export const fromStored = (stored: unknown): string => JSON.parse(`"${String(stored)}"`) as string;

export const toStoredOrNull = (text: string | null): string | null => (text === null ? null : toStored(text));

export const fromStoredOrNull = (stored: unknown): string | null => (stored === null ? null : fromStored(stored));
