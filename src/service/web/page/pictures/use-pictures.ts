import { useEffect, useRef, useState } from "preact/hooks";
import { type Picture, Refusal } from "../api.ts";
import { usePolling, useService } from "../parts/service.ts";

const POLL_MS = 4000;
/** Pictures that a search shows before older ones are looked through: more than a window holds. */
const ENOUGH = 40;

interface PicturePage {
  readonly pictures: readonly Picture[];
  readonly next_cursor: string | null;
  readonly can_delete: boolean;
}

/** The pictures of a query as they are now. */
export interface LivePictures {
  /** undefined before the first page. */
  readonly pictures: readonly Picture[] | undefined;
  readonly hasOlder: boolean;
  readonly error: Error | undefined;
  /** Whether the service deletes pictures. */
  readonly canDelete: boolean;
  loadOlder(): Promise<void>;
  /** Leaves out pictures that have been deleted. */
  leaveOut(deleted: readonly Picture[]): void;
}

/** Pictures that a query finds, newest first, refreshed while they are shown. */
export function usePictures(query: string): LivePictures {
  const client = useService();
  const [state, setState] = useState<{ query: string; pictures?: readonly Picture[]; cursor?: string | null }>({
    query,
  });
  const [error, setError] = useState<Error>();
  const [canDelete, setCanDelete] = useState(false);
  const current = useRef(query);
  const isLoading = useRef(false);
  current.current = query;
  // those of another query
  const { pictures, cursor = null } = state.query === query ? state : { pictures: undefined };
  const load = (after: string | null, signal?: AbortSignal) =>
    client.get<PicturePage>(`api/page/pictures?${query}${after === null ? "" : `&cursor=${after}`}`, signal);
  const fail = (problem: Error) => {
    // the head of the page says that the service is not there
    if (!(problem instanceof Refusal && problem.status === 0)) setError(problem);
  };

  const refresh = async (signal: AbortSignal) => {
    try {
      const page = await load(null, signal);
      if (current.current !== query) return;
      setCanDelete(page.can_delete);
      setState((state) => {
        if (state.query !== query || state.pictures === undefined) {
          return { query, pictures: page.pictures, cursor: page.next_cursor };
        }
        return { ...state, pictures: merged(page.pictures, state.pictures) };
      });
      setError(undefined);
    } catch (problem) {
      if (!signal.aborted) fail(problem as Error);
    }
  };
  usePolling(refresh, POLL_MS, [client, query]);

  const loadOlder = async () => {
    if (cursor === null || isLoading.current) return;
    isLoading.current = true;
    try {
      const page = await load(cursor);
      setState((state) =>
        state.query === query
          ? { query, pictures: merged(state.pictures ?? [], page.pictures), cursor: page.next_cursor }
          : state,
      );
    } catch (problem) {
      fail(problem as Error);
    } finally {
      isLoading.current = false;
    }
  };
  useEffect(() => {
    if (pictures !== undefined && pictures.length < ENOUGH) void loadOlder();
  }, [state]);
  const leaveOut = (deleted: readonly Picture[]) => {
    const gone = new Set(deleted.map(keyOf));
    setState((state) => ({ ...state, pictures: state.pictures?.filter((picture) => !gone.has(keyOf(picture))) }));
  };
  return { pictures, hasOlder: cursor !== null, error, canDelete, loadOlder, leaveOut };
}

export const keyOf = ({ run_id, name }: Pick<Picture, "run_id" | "name">): string => `${run_id}/${name}`;

/** One list after the other, each picture once, by its newest address. */
function merged(first: readonly Picture[], then: readonly Picture[]): readonly Picture[] {
  const keys = new Set(first.map(keyOf));
  return [...first, ...then.filter((picture) => !keys.has(keyOf(picture)))];
}
