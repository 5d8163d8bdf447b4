import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { loadConfig, unknownVariables } from "#src/render/config/load-config.js";
import { createRunMetrics } from "#src/service/hooks/http/metrics.js";
import { RUN_STATES } from "#src/service/hooks/run.js";
import { root } from "../../helpers/folders.js";
import { serviceStarter } from "../../helpers/hooks/hook-service.js";

const FOLDER = join(root, "examples/operations");
/** Labels of metrics of which the service below has no sample. */
const UNSEEN = ["result"];
const HAS_SYSTEMD = spawnSync("systemd-analyze", ["--version"]).error === undefined;
const read = (name: string) => readFileSync(join(FOLDER, name), "utf8");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}
interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly expr: string; readonly refId: string }[];
}
interface Service {
  readonly environment: Readonly<Record<string, string>>;
  readonly stop_grace_period: string;
  readonly volumes: readonly string[];
}

const rules = (parse(read("alerts.yaml")) as { groups: [{ rules: Rule[] }] }).groups[0].rules;
const dashboard = JSON.parse(read("dashboard.json")) as { panels: Panel[]; templating: { list: { query: string }[] } };
const queries = [
  ...rules.map(({ expr }) => expr),
  ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ...dashboard.templating.list.map(({ query }) => query).filter((query) => query !== "prometheus"),
];

describe("examples/operations", () => {
  const start = serviceStarter();

  it("holds the files that this test knows", () => {
    const names = ["Dockerfile", "alerts.yaml", "compose.yaml", "dashboard.json", "latentkit.service"];
    assert.deepEqual(readdirSync(FOLDER).sort(), names);
  });

  it("alerts and dashboard ask for metrics and labels that a service or a worker has", async () => {
    const service = await start();
    const { stream_url } = await service.start("x");
    await (await fetch(service.url + stream_url)).text();
    await fetch(`${service.url}/api/runs`);
    const workers = await createRunMetrics({ running: () => 0, runningLimit: 1 }).registry.metrics();
    const text = (await (await service.get("/metrics")).text()) + workers;
    const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]));
    const used = new Set<string>();
    for (const query of queries) {
      for (const [, name, selector = ""] of query.matchAll(/\b((?:latentkit|process)_\w+)(?:\{([^}]*)\})?/g)) {
        const base = name!.replace(/_bucket$/, "");
        used.add(base);
        assert.equal(types.get(base), base === name ? types.get(name!) : "histogram", `${name} in ${query}`);
        assert.ok(types.has(base), `${name} in ${query}`);
        for (const [, label] of selector.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)) {
          // Prometheus adds the instance
          if (label !== "instance" && !UNSEEN.includes(label!))
            assert.match(text, new RegExp(`^${name}\\{.*\\b${label}="`, "m"), query);
        }
        if (types.get(base) !== "gauge") assert.match(query, /\b(rate|increase)\(/);
        for (const [, states] of selector.matchAll(/\bstate=~?"([^"]*)"/g)) {
          for (const state of states!.split("|")) assert.ok((RUN_STATES as readonly string[]).includes(state), query);
        }
      }
      for (const [, labels] of query.matchAll(/by \(([^)]*)\)/g)) {
        for (const label of labels!.split(", ")) {
          if (label !== "instance" && !UNSEEN.includes(label)) assert.match(text, new RegExp(`[{,]${label}="`), query);
        }
      }
      assert.equal(query.split("(").length, query.split(")").length, query);
      assert.equal(query.split("{").length, query.split("}").length, query);
    }
    const unused = [...types.keys()].filter((name) => !used.has(name) && name !== "process_start_time_seconds");
    assert.deepEqual(unused, [], "a metric that is not used");
  });

  it("alerts name states, routes and what is wrong", () => {
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
    for (const { alert, labels, annotations } of rules) {
      assert.match(alert, /^Latentkit[A-Z]\w+$/);
      assert.match(labels.severity, /^(warning|critical)$/);
      assert.match(annotations.summary, /^\{\{ \$labels\.instance \}\}.*\.$|\(p99\)\.$/);
    }
  });

  it("panels of the dashboard do not overlap", () => {
    const taken = new Set<string>();
    for (const { id, gridPos, targets } of dashboard.panels) {
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.equal(taken.has(`${x},${y}`), false, `panel ${id}`);
          taken.add(`${x},${y}`);
        }
      }
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length);
    }
  });

  it("compose sets keys that exist, and leaves runs the time to end", () => {
    const { services, volumes } = parse(read("compose.yaml")) as {
      services: Record<"latentkit" | "postgres", Service>;
      volumes: object;
    };
    const { environment, stop_grace_period } = services.latentkit;
    const env = Object.fromEntries(
      Object.entries(environment).map(([key, value]) => [key, value.replace(/\$\{\w+:\?[^}]*\}/g, "0123456789abcdef")]),
    );
    assert.deepEqual(unknownVariables(env), []);
    const config = loadConfig({ env });
    assert.equal(config.host, "0.0.0.0");
    assert.equal(config.store, "postgres://latentkit:0123456789abcdef@postgres/latentkit");
    assert.ok(Number.parseInt(stop_grace_period, 10) > config.limits.drain_seconds);
    const used = Object.values(services).flatMap((service) => service.volumes.map((volume) => volume.split(":")[0]));
    assert.deepEqual(used.sort(), Object.keys(volumes).sort());
    assert.match(read("Dockerfile"), /ENTRYPOINT \["node", "\/app\/node_modules\/latentkit\/bin\/latentkit\.mjs"\]/);
  });

  it("the unit lets runs end, and starts what the package has", () => {
    const unit = read("latentkit.service");
    const value = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(unit)?.[1];
    assert.ok(Number(value("TimeoutStopSec")) > loadConfig({ env: {} }).limits.drain_seconds);
    assert.match(value("ExecStart")!, /\/node_modules\/latentkit\/bin\/latentkit\.mjs serve --quiet --config \/etc/);
    assert.equal(value("MemoryDenyWriteExecute"), undefined);
  });

  (HAS_SYSTEMD ? it : it.skip)("systemd accepts the unit and finds it hardened", () => {
    const path = join(FOLDER, "latentkit.service");
    const security = spawnSync("systemd-analyze", ["security", "--offline=yes", "--threshold=20", path], {
      encoding: "utf8",
    });
    assert.equal(security.status, 0, security.stdout + security.stderr);
    const verified = spawnSync("systemd-analyze", ["verify", path], { encoding: "utf8" });
    // programs of this machine may be elsewhere
    assert.doesNotMatch(verified.stderr, /Unknown|Failed to parse|Invalid|ignoring/i);
  });
});
