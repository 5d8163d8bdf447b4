import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Client } from "../api.ts";

const ServiceContext = createContext<Client | undefined>(undefined);

export const ServiceProvider = ServiceContext.Provider;

/** Client of the service; changes with the token. */
export function useService(): Client {
  return useContext(ServiceContext)!;
}

/** State of a resource that is loaded once for each path. */
export interface Loaded<T> {
  readonly value?: T;
  readonly error?: Error;
}

/** Loads a resource when it is first shown, and again with another path, token or count of looks. */
export function useLoaded<T>(path: string | undefined, looks = 0): Loaded<T> {
  const client = useService();
  const [state, setState] = useState<Loaded<T>>({});
  useEffect(() => {
    if (path === undefined) return;
    const stop = new AbortController();
    client.get<T>(path, stop.signal).then(
      (value) => setState({ value }),
      (error: Error) => !stop.signal.aborted && setState((state) => ({ ...state, error })),
    );
    return () => stop.abort();
  }, [client, path, looks]);
  return state;
}

/** Repeats work while the page is visible: at once, then `ms` after each end. What it rejects with is shown elsewhere. */
export function usePolling(work: (signal: AbortSignal) => Promise<void>, ms: number, inputs: readonly unknown[]): void {
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = async () => {
      clearTimeout(timer);
      if (document.visibilityState === "visible") await work(stop.signal).catch(() => undefined);
      if (!stop.signal.aborted) timer = setTimeout(again, ms);
    };
    const onVisible = () => document.visibilityState === "visible" && timer !== undefined && again();
    document.addEventListener("visibilitychange", onVisible);
    void again();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, inputs);
}
