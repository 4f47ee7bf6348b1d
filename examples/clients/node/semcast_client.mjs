// A client of a Semcast daemon in Node, without packages: the reference for JavaScript (docs/client-protocol.md).
// `node semcast_client.mjs SOCKET GROUP TEXT...` joins a group, sends, and prints what comes.
import net from "node:net";
import { pathToFileURL } from "node:url";

export const KIND = {
  hello: 1, welcome: 2, join: 3, leave: 4, done: 5, error: 6, cast: 7, deliver: 8, private: 9, view: 11,
  transitional: 12, taken: 13, placed: 14, credits: 15, ready: 16, block: 17, purged: 18, ping: 19, bye: 20,
  left: 23, outOf: 24, undeliverable: 25, deliverPrivate: 26,
};
const NUMBERED = new Set([8, 11, 12, 14, 17, 18, 23, 24, 25, 26]);
const OVERHEAD = 256;
// The second group of what belongs to calls, in which nobody is (semcast_calls.mjs).
export const CALLS = "\0calls";
export const isCall = (frame) => frame[0] === KIND.deliver && frame[1].length === 2 && frame[1][1] === CALLS;

// One value as msgpack; only what the protocol needs. Integers are exact up to 2^53.
export function pack(value) {
  if (value === null || value === undefined) return Buffer.from([0xc0]);
  if (typeof value === "boolean") return Buffer.from([value ? 0xc3 : 0xc2]);
  if (typeof value === "number" && Number.isInteger(value)) {
    if (value >= 0 && value < 128) return Buffer.from([value]);
    const out = Buffer.alloc(9, 0xcf);
    out.writeBigUInt64BE(BigInt(value), 1);
    return out;
  }
  if (typeof value === "number") {
    const out = Buffer.alloc(9, 0xcb);
    out.writeDoubleBE(value, 1);
    return out;
  }
  const head = Buffer.alloc(5);
  if (typeof value === "string" || Buffer.isBuffer(value)) {
    const data = Buffer.from(value);
    head[0] = typeof value === "string" ? 0xdb : 0xc6;
    head.writeUInt32BE(data.length, 1);
    return Buffer.concat([head, data]);
  }
  head[0] = 0xdd;
  head.writeUInt32BE(value.length, 1);
  return Buffer.concat([head, ...value.map(pack)]);
}

// One value, and where the next begins.
export function unpack(data, at = 0) {
  const head = data[at++];
  const many = (count) => {
    const found = [];
    for (let n = 0; n < count; n++) {
      let value;
      [value, at] = unpack(data, at);
      found.push(value);
    }
    return [found, at];
  };
  const bytes = (size) => [data.subarray(at, at + size), at + size];
  const text = (size) => [data.toString("utf8", at, at + size), at + size];
  const uint = (size) => {
    const value = size === 8 ? Number(data.readBigUInt64BE(at)) : data.readUIntBE(at, size);
    at += size;
    return value;
  };
  if (head < 0x80) return [head, at];
  if (head >= 0xe0) return [head - 256, at];
  if (head >= 0x90 && head < 0xa0) return many(head & 0x0f);
  if (head >= 0xa0 && head < 0xc0) return text(head & 0x1f);
  switch (head) {
    case 0xc0: return [null, at];
    case 0xc2: return [false, at];
    case 0xc3: return [true, at];
    case 0xc4: case 0xc5: case 0xc6: return bytes(uint(1 << (head - 0xc4)));
    case 0xcb: return [data.readDoubleBE(at), at + 8];
    case 0xcc: case 0xcd: case 0xce: case 0xcf: return [uint(1 << (head - 0xcc)), at];
    case 0xd9: case 0xda: case 0xdb: return text(uint(1 << (head - 0xd9)));
    case 0xdc: case 0xdd: return many(uint(2 << (head - 0xdc)));
    default: throw new Error(`no such value: ${head}`);
  }
}

// Frames over a socket: `say` sends one, `hear` waits for the next, null at the end.
export class Wire {
  constructor(path) {
    this.rest = Buffer.alloc(0);
    this.frames = [];
    this.waiting = [];
    this.over = false;
    this.socket = net.createConnection(path);
    this.socket.on("data", (data) => this.receive(data));
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.over = true;
      this.waiting.splice(0).forEach((wake) => wake());
    });
  }

  receive(data) {
    this.rest = Buffer.concat([this.rest, data]);
    while (this.rest.length >= 4 && this.rest.length >= 4 + this.rest.readUInt32BE(0)) {
      const end = 4 + this.rest.readUInt32BE(0);
      this.frames.push(unpack(this.rest, 4)[0]);
      this.rest = this.rest.subarray(end);
    }
    this.waiting.splice(0).forEach((wake) => wake());
  }

  say(frame) {
    const body = pack(frame);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(body.length);
    this.socket.write(Buffer.concat([head, body]));
    return body.length + OVERHEAD;
  }

  // The next frame; null at the end, or if none comes in so many milliseconds.
  async hear(timeout = Infinity) {
    const until = Date.now() + timeout;
    while (!this.frames.length && !this.over && Date.now() < until) {
      const timer = { id: undefined };
      await new Promise((wake) => {
        this.waiting.push(wake);
        if (timeout < Infinity) timer.id = setTimeout(wake, until - Date.now() + 1);
      });
      clearTimeout(timer.id);
    }
    return this.frames.shift() ?? null;
  }
}

// One session. `events` gives what comes, in the order of the daemons.
export class Client {
  static async connect(path, name = "", token = "") {
    const client = new Client();
    client.wire = new Wire(path);
    client.wire.say([KIND.hello, 1, name, token]);
    const [kind, ...rest] = (await client.wire.hear()) ?? [KIND.error, "the daemon is gone"];
    if (kind !== KIND.welcome) throw new Error(rest.at(-1));
    [, client.member, client.daemon, client.domain, , client.messages, client.bytes] = rest;
    Object.assign(client, { seq: 0, told: 0, taken: 0, placed: 0, pending: [], watch: async () => {} });
    return client;
  }

  async request(kind, count, ...rest) {
    while (this.messages < count || this.bytes <= 0) this.pending.push(await this.hear());
    const first = this.seq + 1;
    this.seq += count;
    this.messages -= count;
    this.bytes -= this.wire.say([kind, first, ...rest]);
    return first;
  }

  join(group, flavour = "evs") { return this.request(KIND.join, 1, group, flavour); }
  leave(group) { return this.request(KIND.leave, 1, group); }
  cast(groups, payloads, items = null, level = "agreed") {
    return this.request(KIND.cast, payloads.length, groups, level, payloads, items);
  }
  sendTo(member, payload) { return this.request(KIND.private, 1, member, payload); }

  async hear(timeout = Infinity) {
    const frame = await this.wire.hear(timeout);
    if (frame === null && this.wire.over) throw new Error("the daemon closed the connection");
    if (frame === null) return null;
    const [kind] = frame;
    if (kind === KIND.credits) [this.messages, this.bytes] = [this.messages + frame[1], this.bytes + frame[2]];
    if (NUMBERED.has(kind) && (++this.told - this.taken >= 64 || kind === KIND.placed)) {
      this.taken = this.told;
      this.wire.say([KIND.taken, this.taken]);
    }
    if (kind === KIND.placed) this.placed = frame[1];
    if (kind === KIND.block) this.wire.say([KIND.ready, frame[1], frame[2]]);
    if (kind === KIND.left) throw new Error(frame[1]);
    await this.watch(frame);
    return frame;
  }

  async *events() {
    for (;;) {
      const frame = this.pending.shift() ?? (await this.hear());
      if (![KIND.credits, KIND.placed, KIND.block].includes(frame[0]) && !isCall(frame)) yield frame;
    }
  }

  close() {
    this.wire.say([KIND.bye]);
    this.wire.socket.end();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [, , path, group, ...texts] = process.argv;
  const client = await Client.connect(path);
  await client.join(group);
  for (const text of texts) await client.cast([group], [Buffer.from(text)]);
  for await (const frame of client.events()) console.log(JSON.stringify(frame));
}
