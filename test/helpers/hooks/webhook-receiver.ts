import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { FakeClock } from "./fake-clock.js";

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly at: number;
}

/** A receiver on the loopback interface whose responses a test writes. */
export class Receiver {
  readonly received: Received[] = [];
  respond: RequestListener = (_req, res) => void res.writeHead(204).end();
  clock: FakeClock | undefined;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((req, res) => {
      const chunks: Buffer[] = [];
      req.on("data", (chunk: Buffer) => chunks.push(chunk));
      req.on("end", () => {
        const body = Buffer.concat(chunks).toString();
        this.received.push({ headers: req.headers, body, at: this.clock?.now() ?? Date.now() });
        this.respond(req, res);
      });
    });
  }

  static async listen(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook?key=1`;
  }

  /** Ids of the messages, in the order of their arrival. */
  get ids(): string[] {
    return this.received.map(({ headers }) => String(headers["webhook-id"]));
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
