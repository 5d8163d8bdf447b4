// Clients over the loopback that say exactly what an attack wants.
import { connect } from "node:net";

const sockets = new Set();

export function closeSockets() {
  for (const socket of sockets) socket.destroy();
}

const lines = (first, headers, body) =>
  [`${first} HTTP/1.1`, "Host: 127.0.0.1", ...headers, `Content-Length: ${Buffer.byteLength(body)}`, "", body].join(
    "\r\n",
  );
export const post = (path, headers, body) => lines(`POST ${path}`, headers, body);
export const get = (path, headers = []) => [`GET ${path} HTTP/1.1`, "Host: 127.0.0.1", ...headers, "", ""].join("\r\n");

export function open(port) {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  sockets.add(socket.once("close", () => sockets.delete(socket)));
  return socket;
}

/** Sends a request on its own connection; reads until the service closes it or the response has its length. */
export async function request(port, text) {
  const socket = open(port);
  socket.write(text);
  const chunks = [];
  let head;
  for await (const chunk of socket) {
    chunks.push(chunk);
    head ??= headOf(chunks);
    const length = Number(/^content-length: (\d+)$/im.exec(head ?? "")?.[1] ?? Number.NaN);
    if (Buffer.byteLength(head ?? "", "latin1") + length <= chunks.reduce((sum, part) => sum + part.length, 0)) break;
  }
  socket.destroy();
  const response = Buffer.concat(chunks);
  const split = response.indexOf("\r\n\r\n");
  return { status: Number(response.toString("latin1", 9, 12)), text: response.toString("utf8", split + 4) };
}

function headOf(chunks) {
  const text = Buffer.concat(chunks).toString("latin1");
  const end = text.indexOf("\r\n\r\n");
  return end < 0 ? undefined : text.slice(0, end + 4);
}

/** `count` calls, `lanes` of them at once. */
export async function inLanes(lanes, count, call) {
  let left = count;
  const lane = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
