// Attacks on what takes whole graphs, files and WebSockets, and on groups of runs.
import { setTimeout as sleep } from "node:timers/promises";
import { get, inLanes, post } from "./http.mjs";
import { AUTH } from "./service.mjs";

const JSON_TYPE = "Content-Type: application/json";
const MIB = 2 ** 20;
const SOCKETS = 300;

export function comfyAttacks() {
  return {
    groups: { attack: manyGroups },
    graphs: { rendersGraph: true, attack: hostileGraphs },
    uploads: { rendersGraph: true, attack: hostileUploads },
    websockets: { rendersGraph: true, attack: pausedWebSockets },
  };
}

/** Groups as large as may be until they are refused, then readers of one that never read. */
async function manyGroups(service) {
  const group = JSON.stringify({ items: Array.from({ length: 1000 }, () => ({ message: "x".repeat(3000) })) });
  const start = (body) => service.send(post("/hooks/group", [AUTH, JSON_TYPE], body));
  const { status, text } = await start(group);
  if (status !== 202) return `a group got status ${status}`;
  const { stream_url } = JSON.parse(text);
  for (let i = 0; i < SOCKETS; i++) service.pausedSocket(get(stream_url));
  await inLanes(4, 40, () => start(group));
  for (const body of [
    `{"items":${"[".repeat(4 * MIB - 100)}`,
    `{"items":[${"{},".repeat(MIB)}{}]}`,
    `{"items":[${'{"message":"x"},'.repeat(2000)}{"message":"x"}]}`,
    `{"items":[{"message":"x"}],"defaults":{"tags":[${'"x",'.repeat(500_000)}"x"]}}`,
    `{"items":[{"message":"${"x".repeat(4 * MIB - 100)}"}]}`,
  ]) {
    await inLanes(4, 8, async () => {
      const { status } = await start(body);
      if (status < 400 || status >= 500) throw new Error(`a hostile group got status ${status}`);
    });
  }
}

/** Graphs that are hard to read, check or fill, by both APIs of ComfyUI. */
async function hostileGraphs(service) {
  const node = (inputs) => `{"class_type":"EmptyImage","inputs":${inputs}}`;
  const nodes = (count, text) => `{${Array.from({ length: count }, (_, i) => `"${i}":${text(i)}`)}}`;
  const link = (i) => node(`{"width":["${i + 1}",0]}`);
  const graphs = [
    "[".repeat(3 * MIB),
    `{"1":${node(`{"width":${"9".repeat(3 * MIB)}}`)}}`,
    `{"1":${node(`{"width":"${"9".repeat(3 * MIB)}x"}`)}}`,
    nodes(9000, () => node(`{"width":64,"height":64,"batch_size":1,"color":0}`)),
    nodes(9000, link),
    nodes(9000, () => `{"class_type":"no such class","inputs":{}}`),
    `{"1":${node(nodes(100_000, () => "0"))}}`,
    `{"1":${node(`{"width":${"[".repeat(200)}${"1,".repeat(MIB)}1${"]".repeat(200)}}`)}}`,
    `{"nodes":[${"{},".repeat(500_000)}{}],"links":[]}`,
    `{"1":${node(`{"width":"${"{{a}}".repeat(500_000)}"}`)}}`,
  ];
  for (const graph of graphs) {
    for (const [path, body] of [
      ["/prompt", `{"prompt":${graph},"client_id":"x"}`],
      ["/api/v2/jobs", `{"workflow":${graph}}`],
      ["/api/v2/jobs", `{"workflow":{"1":${node("{}")}},"inputs":${graph}}`],
    ]) {
      await inLanes(4, 4, async () => {
        const { status } = await service.send(post(path, [AUTH, JSON_TYPE], body));
        // the largest valid one may run
        if (status >= 500) throw new Error(`a graph got status ${status} of ${path}`);
      });
    }
  }
  for (const path of ["/history", "/queue", "/object_info", "/api/v2/jobs"]) {
    await inLanes(4, 40, () => service.get(path, [AUTH]));
  }
}

/** Forms without pictures, without an end, or with only boundaries. */
async function hostileUploads(service) {
  const type = "Content-Type: multipart/form-data; boundary=b";
  const part = (name, text) => `--b\r\nContent-Disposition: form-data; name="${name}"; filename="x.png"\r\n\r\n${text}`;
  const bodies = [
    "\r\n--".repeat(2 * MIB),
    `--b\r\n${"x".repeat(4 * MIB)}`,
    `${part("image", "\r\n--b".repeat(MIB))}\r\n--b--`,
    `${part("image", "x".repeat(8 * MIB))}`,
    `${part("image", "\r\n--")}`.repeat(50_000),
    `--b\r\nContent-Disposition: form-data;${' name="'.repeat(1000)}\r\n\r\nx\r\n--b--`,
  ];
  for (const body of bodies) {
    for (const path of ["/upload/image", "/upload/mask", "/api/v2/assets"]) {
      await inLanes(4, 8, async () => {
        const { status } = await service.send(post(path, [AUTH, type], body));
        if (status < 200 || status >= 500) throw new Error(`a form got status ${status} of ${path}`);
      });
    }
  }
}

/** WebSockets that write what they like and never read, while prompts run. */
async function pausedWebSockets(service) {
  const upgrade = (query, headers = [AUTH]) =>
    get(`/ws?${query}`, [
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
      ...headers,
    ]);
  const foreign = await service.send(upgrade("clientId=me", [AUTH, "Origin: https://example.com"]));
  if (foreign.status !== 403) return `a foreign WebSocket got status ${foreign.status}`;
  const closed = await service.send(upgrade("clientId=me", []));
  if (closed.status !== 401) return `a WebSocket without a token got status ${closed.status}`;
  const sockets = Array.from({ length: SOCKETS }, (_, i) => service.pausedSocket(upgrade(`clientId=c${i % 30}`)));
  await sleep(500);
  // pings, which are to be answered; half frames; frames without a mask; the longest one
  const frames = ["898000000000", "81fe7d00", "810141", "82ff0000000000010000"].map((hex) =>
    Buffer.from(hex.padEnd(hex.length + (hex.length % 2), "0"), "hex"),
  );
  for (const [i, socket] of sockets.entries()) {
    if (socket.writable) socket.write(i % 2 === 0 ? Buffer.concat(Array(2000).fill(frames[0])) : frames[i % 4]);
  }
  const graph = (seed) => ({
    1: { class_type: "EmptyImage", inputs: { width: 64, height: 64, batch_size: 1, color: seed } },
    2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "x" } },
  });
  await inLanes(2, 60, async () => {
    const prompt = graph(Math.floor(Math.random() * 2 ** 24));
    const { status } = await service.post("/prompt", { prompt, client_id: `c${Math.floor(Math.random() * 30)}` });
    if (status !== 200) throw new Error(`a prompt got status ${status}`);
  });
  await sleep(2000);
}
