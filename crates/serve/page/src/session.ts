// The page's end of Weir's own protocol, as docs/protocol.md describes it.

export interface FlowSample {
  flow: number;
  bytes: number;
}

type ServerMessage =
  | { type: "welcome"; version: number; server: string; challenge: string | null }
  | { type: "ready"; token: string; client: string; congestion: string[]; limits: Limits }
  | { type: "opened"; flow: number; ticket: string }
  | { type: "started"; flow: number; t_ns: number }
  | { type: "samples"; t_ns: number; flows: FlowSample[] }
  | { type: "done"; last: FlowSample; t_ns: number; reason: string }
  | { type: "pong"; id: number; t_ns: number }
  | { type: "error"; flow: number | null; reason: string };

/** What the server lets a client do. */
interface Limits {
  duration_ns: number;
  /** Of this client's address in each direction; a server of before tells none. */
  rate_bps?: number | null;
}

export type Direction = "down" | "up";

/** The server wants to know its secret first. */
export class SecretNeeded extends Error {}

/** Who wants to hear what. */
export interface Listener {
  /** A ping that was sent at `sent` came back at `now` (ms, the page's clock). */
  pong(sent: number, now: number): void;
  /** Bytes of uploads that arrived until the server's time `t` in seconds, by flow. */
  arrived(t: number, flows: FlowSample[]): void;
}

/** A session with the server. */
export class Session {
  #socket: WebSocket;
  #listener: Listener;
  #sent = new Map<number, number>();
  #pings = 0;
  #flows = 0;
  #uploads = new Set<number>();
  #opening = new Map<number, (ticket: string) => void>();
  #congestion: string | undefined;
  #heard = performance.now();
  #longest = Number.POSITIVE_INFINITY;
  #limit: number | null = null;
  #fail: (error: Error) => void = () => undefined;
  /** Rejects when the session breaks. */
  readonly broken: Promise<never>;

  private constructor(socket: WebSocket, listener: Listener) {
    this.#socket = socket;
    this.#listener = listener;
    this.broken = new Promise((_, reject) => {
      this.#fail = reject;
    });
    // It may break while nobody waits.
    this.broken.catch(() => undefined);
  }

  /** Opens a session with the server that the page came from; `stop` ends it at any time. */
  static async open(listener: Listener, secret: string, stop: AbortSignal): Promise<Session> {
    const address = new URL("weir/v1", location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const session = new Session(new WebSocket(address, "weir.v1"), listener);
    stop.addEventListener("abort", () => session.end(stop.reason as Error));
    const late = setTimeout(() => session.end(new Error("The server does not answer.")), OPENING_MS);
    try {
      await Promise.race([session.#shakeHands(secret), session.broken]);
    } catch (error) {
      session.close();
      throw error;
    } finally {
      clearTimeout(late);
    }
    return session;
  }

  #shakeHands(secret: string): Promise<void> {
    const nonce = hex(crypto.getRandomValues(new Uint8Array(8)));
    return new Promise((resolve, reject) => {
      this.#socket.onopen = () => {
        this.#socket.onclose = () => this.#fail(new Error(CLOSED));
        this.#say({ type: "hello", version: 1, client: "page", nonce });
      };
      this.#socket.onclose = () => void whyClosed().then((why) => this.#fail(why));
      this.#socket.onmessage = (event: MessageEvent<string>) => {
        const message = JSON.parse(event.data) as ServerMessage;
        this.#heard = performance.now();
        switch (message.type) {
          case "welcome":
            if (message.challenge === null) break;
            if (secret === "") {
              reject(new SecretNeeded());
              this.close();
              break;
            }
            answer(secret, message.challenge, nonce).then((mac) => {
              this.#say({ type: "authenticate", mac });
            }, reject);
            break;
          case "ready":
            this.#congestion = message.congestion.includes(CONGESTION) ? CONGESTION : undefined;
            this.#longest = message.limits.duration_ns / 1e9;
            this.#limit = (message.limits.rate_bps ?? 0) / 1e6 || null;
            resolve();
            break;
          case "opened":
            this.#opening.get(message.flow)?.(message.ticket);
            this.#opening.delete(message.flow);
            break;
          case "samples":
            this.#listener.arrived(
              message.t_ns / 1e9,
              message.flows.filter((one) => this.#uploads.has(one.flow)),
            );
            break;
          case "pong": {
            const sent = this.#sent.get(message.id);
            this.#sent.delete(message.id);
            if (sent !== undefined) this.#listener.pong(sent, performance.now());
            break;
          }
          case "error":
            this.#fail(new Error(`The server says: ${message.reason}.`));
            break;
          case "started":
          case "done":
            break;
        }
      };
    });
  }

  /** Asks for an answer over this connection, which carries nothing else. */
  ping(): void {
    this.#pings += 1;
    this.#sent.set(this.#pings, performance.now());
    this.#say({ type: "ping", id: this.#pings });
  }

  /** When the pings were sent that have no answer yet (ms, the page's clock). */
  get unanswered(): readonly number[] {
    return [...this.#sent.values()];
  }

  /** When the server was last heard (ms, the page's clock). */
  get heard(): number {
    return this.#heard;
  }

  /** For how many seconds the server lets a flow last. */
  get longest(): number {
    return this.#longest;
  }

  /** How many Mbit/s the server gives this address in each direction; null is without a limit. */
  get limit(): number | null {
    return this.#limit;
  }

  /** Asks for a flow, and returns the address of its data. */
  async openFlow(direction: Direction, seconds: number): Promise<string> {
    this.#flows += 1;
    const flow = this.#flows;
    if (direction === "up") this.#uploads.add(flow);
    const ticket = new Promise<string>((resolve) => this.#opening.set(flow, resolve));
    const sample_ns = SAMPLE_MS * 1e6;
    const congestion = this.#congestion;
    this.#say({ type: "open", flow, direction, duration_ns: seconds * 1e9, sample_ns, congestion });
    return `weir/v1/flow?ticket=${await Promise.race([ticket, this.broken])}`;
  }

  /** Breaks the session off: `broken` rejects with `why`. */
  end(why: Error): void {
    this.#fail(why);
    this.close();
  }

  close(): void {
    this.#socket.onclose = null;
    this.#socket.close();
  }

  #say(message: object): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }
}

/** Why no session came to be: a browser does not tell a page how its WebSocket was refused, but a request it does. */
async function whyClosed(): Promise<Error> {
  try {
    const response = await fetch("weir/v1", { cache: "no-store", signal: AbortSignal.timeout(ASKING_MS) });
    if ([429, 503].includes(response.status)) return new Error(`The server says: ${(await response.text()).trim()}.`);
  } catch {
    // It is not there.
  }
  return new Error(CLOSED);
}

/** HMAC-SHA256 of the challenge and the nonce with the secret, as the server expects it. */
async function answer(secret: string, challenge: string, nonce: string): Promise<string> {
  if (!("subtle" in crypto)) {
    throw new Error("A secret can only be used over https: open this page with https:// instead of http://.");
  }
  const text = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", text.encode(secret), algorithm, false, ["sign"]);
  const context = text.encode("weir.v1 session");
  const message = new Uint8Array(context.length + 16);
  message.set(context);
  message.set(bytes(challenge), context.length);
  message.set(bytes(nonce), context.length + 8);
  return hex(new Uint8Array(await crypto.subtle.sign("HMAC", key, message)));
}

function hex(data: Uint8Array): string {
  return Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function bytes(digits: string): Uint8Array {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** How often the server tells how many bytes there are. */
const SAMPLE_MS = 100;
const CLOSED = "The server ended the connection, or cannot be reached.";
const ASKING_MS = 5_000;
/** How long a session may take to open. */
const OPENING_MS = 20_000;
/** What the server's end of a flow is to use where it can: what `weir test` asks for, whose figures these are like. */
const CONGESTION = "cubic";
