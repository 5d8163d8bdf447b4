import "./styles/base.css";
import "./styles/shell.css";
import "./styles/runs.css";
import "./styles/pictures.css";
import "./styles/graph.css";
import "./styles/tables.css";
import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { createClient } from "./api.ts";
import { BatchView } from "./batch/batch-view.tsx";
import { GraphView } from "./graph/graph-view.tsx";
import { ModelsView, NodesView } from "./library.tsx";
import mark from "./mark.svg";
import { addressOf, type Route, useRoute } from "./parts/route.ts";
import { ServiceProvider } from "./parts/service.ts";
import { PicturesView } from "./pictures/pictures-view.tsx";
import { RunsView } from "./runs/runs-view.tsx";
import { forgetToken, keepToken, TokenDialog, takeToken } from "./token.tsx";

const VIEWS = { runs: "Runs", pictures: "Pictures", graph: "Graph", nodes: "Nodes", models: "Models" } as const;

/** The page: a head with the views, the view, and a question for the token if it is needed. */
function App() {
  const [token, setToken] = useState(takeToken);
  const main = useRef<HTMLElement>(null);
  const [isRefused, setRefused] = useState(false);
  const [isReachable, setReachable] = useState(true);
  const route = useRoute();
  const refuse = () => {
    forgetToken();
    setRefused(true);
  };
  const client = useMemo(
    () => (token === undefined ? undefined : createClient(token, { refused: refuse, reached: setReachable })),
    [token],
  );
  const enter = (next: string) => {
    keepToken(next);
    setToken(next);
    setRefused(false);
  };
  const name = VIEWS[route[0] as keyof typeof VIEWS] ?? VIEWS.runs;
  useEffect(() => {
    document.title = `${name} · latentkit`;
  }, [name]);
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: it goes to a place, but the part behind "#" is the page's address */}
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current!.focus();
        }}
      >
        Skip to the content
      </a>
      <header class="head">
        <h1>
          <a class="brand" href={addressOf("runs")}>
            <img src={mark} alt="" width={20} height={20} />
            latentkit
          </a>
        </h1>
        <nav aria-label="Views">
          {Object.entries(VIEWS).map(([view, words]) => (
            <a key={view} href={addressOf(view)} aria-current={words === name ? "page" : undefined}>
              {words}
            </a>
          ))}
        </nav>
        <span class={isReachable ? "reach" : "reach lost"} role="status">
          {isReachable ? "" : "The service does not respond. Trying again …"}
        </span>
      </header>
      <main ref={main} id="main" tabIndex={-1}>
        {client !== undefined && (
          <ServiceProvider value={client}>
            <View route={route} />
          </ServiceProvider>
        )}
      </main>
      {(client === undefined || isRefused) && <TokenDialog isRefused={isRefused} onToken={enter} />}
    </>
  );
}

function View({ route: [view, ...rest] }: { route: Route }) {
  switch (view) {
    case "pictures":
      return <PicturesView selected={rest} />;
    case "batch":
      return <BatchView id={rest[0] ?? ""} />;
    case "graph":
      return <GraphView />;
    case "nodes":
      return <NodesView />;
    case "models":
      return <ModelsView />;
    default:
      return <RunsView selected={rest} />;
  }
}

render(<App />, document.getElementById("page")!);
