import { useEffect, useState } from "preact/hooks";

/** Parts of the address behind "#/": the view, and the thing that it shows. */
export type Route = readonly [view: string, ...rest: string[]];

/** Parts of the address, decoded; changes as people go back and forth. */
export function useRoute(): Route {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const onChange = () => setRoute(readRoute());
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return route;
}

export const addressOf = (...parts: Route): string => `#/${parts.map(encodeURIComponent).join("/")}`;

/** Goes to another part of the page. */
export function goTo(...parts: Route): void {
  location.hash = addressOf(...parts);
}

function readRoute(): Route {
  try {
    const [view = "", ...rest] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
    return [view === "" ? "runs" : view, ...rest];
  } catch {
    // a typed address
    return ["runs"];
  }
}
