import { useEffect, useRef, useState } from "preact/hooks";
import { createClient, isConfigured, Refusal } from "./api.ts";

const SET_TOKEN = `export LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN=$(node -p "crypto.randomBytes(24).toString('hex')")`;

/** Asks for the hook token, and tries it. A service without one says how to set it. */
export function TokenDialog({ isRefused, onToken }: { isRefused: boolean; onToken: (token: string) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [hasToken, setHasToken] = useState(true);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    dialog.current!.showModal();
    // a service that does not respond is reported when the token is tried
    isConfigured().then(setHasToken, () => undefined);
  }, []);
  const enter = async (event: Event) => {
    event.preventDefault();
    const token = text.trim();
    try {
      await createClient(token, { refused: () => undefined, reached: () => undefined }).get("api/runs?limit=1");
      onToken(token);
    } catch (error) {
      const isWrong = error instanceof Refusal && error.status === 401;
      setProblem(isWrong ? "This token is not valid." : (error as Error).message);
    }
  };
  return (
    <dialog ref={dialog} class="token" aria-labelledby="token-title" onCancel={(event) => event.preventDefault()}>
      <form onSubmit={enter}>
        <h2 id="token-title">{hasToken ? "Hook token" : "This service has no token"}</h2>
        {hasToken ? (
          <>
            <p>
              {isRefused
                ? "The service no longer accepts this token. Enter the current one."
                : "Enter the token with which the service was started. This tab keeps it until you close it."}
            </p>
            <label for="token">Token</label>
            <input
              id="token"
              type="password"
              autocomplete="current-password"
              required
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
            />
            {problem !== undefined && (
              <p class="problem" role="alert">
                {problem}
              </p>
            )}
            <button type="submit" class="primary">
              Open
            </button>
          </>
        ) : (
          <>
            <p>A token is required to read or start anything. Set it in the terminal, and start the service again:</p>
            <pre>
              {SET_TOKEN}
              {"\n"}npx latentkit serve
            </pre>
            <p>
              <code>npx latentkit serve --open</code> needs no setup: it opens this page with a temporary token.
            </p>
            <button type="button" class="primary" onClick={() => location.reload()}>
              Retry
            </button>
          </>
        )}
      </form>
    </dialog>
  );
}

const IN_ADDRESS = /^#token=(.+)$/;
/** Other services may stand below other prefixes of this host. */
const KEY = `latentkit token of ${location.pathname}`;

/** The hook token that this tab was opened with, or that it has kept; undefined if there is none. */
export function takeToken(): string | undefined {
  const [, handed] = IN_ADDRESS.exec(location.hash) ?? [];
  if (handed === undefined) return onStorage((storage) => storage.getItem(KEY)) ?? undefined;
  history.replaceState(null, "", location.pathname + location.search);
  const token = decoded(handed);
  keepToken(token);
  return token;
}

// decisions: The page keeps the token for its tab
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
