import { render } from "preact";
import { App } from "./app.tsx";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/runs.css";
import "./styles/pictures.css";
import "./styles/graph.css";
import "./styles/library.css";
import "./styles/batch.css";

render(<App />, document.getElementById("page")!);
