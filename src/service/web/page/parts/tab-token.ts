const IN_ADDRESS = /^#token=(.+)$/;
/** Other services may stand below other prefixes of this host. */
const KEY = `latentkit token of ${location.pathname}`;

/** The hook token that this tab was opened with, or that it has kept; undefined where there is none. */
export function takeToken(): string | undefined {
  const [, handed] = IN_ADDRESS.exec(location.hash) ?? [];
  if (handed === undefined) return onStorage((storage) => storage.getItem(KEY)) ?? undefined;
  history.replaceState(null, "", location.pathname + location.search);
  const token = decoded(handed);
  keepToken(token);
  return token;
}

// decision 283
/** Keeps the token until the tab is closed. */
export const keepToken = (token: string): void => void onStorage((storage) => storage.setItem(KEY, token));

export const forgetToken = (): void => void onStorage((storage) => storage.removeItem(KEY));

function onStorage<T>(work: (storage: Storage) => T): T | undefined {
  try {
    return work(sessionStorage);
  } catch {
    // a browser that stores nothing asks again after a reload
    return undefined;
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
