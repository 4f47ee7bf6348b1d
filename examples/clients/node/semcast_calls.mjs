// Calls for the reference client: ask the members of a group, and answer (docs/client-protocol.md, Calls).
//
//   const client = await Client.connect(path);
//   const calls = new Calls(client, (group, caller, payload) => payload);  // before it joins a group
//   await client.join("echo");
//   (await calls.call("echo", Buffer.from("hi"))).replies
import { CALLS, isCall, KIND, pack, unpack } from "./semcast_client.mjs";

const ASK = 1, SAY = 2;
export const ALL = 0, ONE = 1;
const REPLY = 0, ERROR = 1, ABSTAINS = 2;
const key = (member) => JSON.stringify(member); // members are arrays: compared by what they say

// What came of a call: `complete`, `too few` or `timeout`; empty while it waits.
class Answer {
  constructor(replies, to) {
    Object.assign(this, { outcome: "", replies: new Map(), errors: new Map(), departed: [], abstained: [], missing: [] });
    Object.assign(this, { wanted: replies, to, expected: null, early: [] });
  }

  // What a member says counts if it was asked, is there, and says it for the first time.
  hear(member, what, body) {
    if (this.expected === null) this.early.push([member, what, body]);
    else if (this.waiting().includes(member)) {
      if (what === ABSTAINS) this.abstained.push(member);
      else if (what === ERROR) this.errors.set(member, body.toString());
      else this.replies.set(member, body);
    }
  }

  waiting() {
    const done = new Set([...this.replies.keys(), ...this.errors.keys(), ...this.departed, ...this.abstained]);
    return (this.expected ?? []).filter((member) => !done.has(member));
  }

  judge(hopeless = false) {
    if (this.expected === null || this.outcome) return;
    const got = this.replies.size + this.errors.size, waiting = this.waiting().length;
    const voters = this.expected.length - this.abstained.length;
    const needs = { first: 1, majority: Math.floor(voters / 2) + 1, all: Math.max(1, got + waiting) };
    const need = this.to !== ALL ? 1 : needs[this.wanted] ?? this.wanted;
    if (got >= need) this.end("complete");
    else if (hopeless || (this.to !== ONE && got + waiting < need)) this.end("too few");
  }

  end(outcome) { [this.outcome, this.missing] = [outcome, this.waiting()]; }
}

// The calls of one client, in all its groups. Without a handler it says that it answers none.
export class Calls {
  constructor(client, handler = null) {
    Object.assign(this, { client, handler, me: key(client.member), number: 0 });
    this.views = new Map(); // group: those of the last view who are still together
    this.open = new Map(); // number: group and answer
    this.last = new Map(); // group and caller: the number of its last request
    this.duties = new Map(); // requests for one: who may have it, in this order
    client.watch = (frame) => this.watch(frame);
  }

  // Ask a group that this client is in; what else comes meanwhile is kept for `events`.
  async call(group, payload, { replies = "all", to = ALL, timeout = 10 } = {}) {
    const number = ++this.number, answer = new Answer(replies, to), until = Date.now() + timeout * 1000;
    this.open.set(number, { group, answer });
    await this.say(group, [ASK, number, to, Math.round(timeout * 1e9), payload]);
    while (!answer.outcome) {
      const left = until - Date.now();
      const frame = left > 0 ? await this.client.hear(left) : null;
      if (frame === null) answer.end("timeout");
      else this.client.pending.push(frame);
    }
    this.open.delete(number);
    return answer;
  }

  say(group, envelope) { return this.client.cast([group, CALLS], [pack(envelope)]); }

  async watch(frame) {
    const [kind, group] = frame;
    if (kind === KIND.view) await this.onView(group, frame[3].map(key));
    else if (kind === KIND.transitional) {
      const there = new Set(frame[3].map(key));
      await this.onView(group, (this.views.get(group) ?? []).filter((each) => there.has(each)));
    } else if (kind === KIND.outOf) this.views.delete(group);
    else if (isCall(frame)) {
      const [[number, rest], index] = frame[4];
      const first = ((BigInt(number) << 1n) | BigInt(rest)) << 53n | BigInt(index);
      for (const [place, payload] of frame[5].entries()) {
        await this.onEnvelope(group[0], key(frame[2]), first + BigInt(place), unpack(payload)[0]);
      }
    }
  }

  // Who was asked and did not come along is departed; its own requests are nobody's any more.
  async onView(group, members) {
    const there = new Set(members);
    for (const each of this.views.get(group) ?? []) if (!there.has(each)) this.last.delete(key([group, each]));
    this.views.set(group, members);
    for (const call of this.open.values()) {
      if (call.group !== group || call.answer.expected === null) continue;
      call.answer.departed.push(...call.answer.waiting().filter((each) => !there.has(each)));
      call.answer.judge();
    }
    for (const [name, duty] of [...this.duties]) {
      if (duty.group !== group) continue;
      if (!there.has(duty.caller)) this.duties.delete(name);
      else await this.choose(name, duty.candidates.filter((each) => there.has(each)));
    }
  }

  async onEnvelope(group, sender, position, envelope) {
    if (envelope[0] === ASK) {
      const [, number, to, , body] = envelope, name = key([group, sender]);
      if (number > (this.last.get(name) ?? 0) && this.views.has(group)) {
        this.last.set(name, number);
        await this.onAsk(group, sender, number, to, position, body);
      }
    } else if (envelope[0] === SAY) {
      const caller = key(envelope[1]), [, , number, what, body] = envelope;
      const call = caller === this.me ? this.open.get(number) : undefined;
      call?.answer.hear(sender, what, body);
      call?.answer.judge();
      const name = key([group, caller, number]), duty = this.duties.get(name);
      if (duty && what === ABSTAINS) await this.choose(name, duty.candidates.filter((each) => each !== sender));
      else if (duty && sender === duty.candidates[0]) this.duties.delete(name);
    }
  }

  // A request is delivered: in this view, for all of it.
  async onAsk(group, caller, number, to, position, body) {
    const members = this.views.get(group);
    const answer = caller === this.me ? this.open.get(number)?.answer : undefined;
    if (answer) {
      answer.expected = Array.isArray(to) ? [key(to)] : [...members];
      for (const said of answer.early) answer.hear(...said);
      answer.judge();
    }
    if (to === ONE) {
      const first = Number(position % BigInt(members.length)), name = key([group, caller, number]);
      this.duties.set(name, { group, caller, number, body, candidates: [] });
      await this.choose(name, [...members.slice(first), ...members.slice(0, first)]);
    } else if (to === ALL || key(to) === this.me) await this.answer({ group, caller, number, body });
  }

  // A request for one is the first's of those who are left; the same at all members.
  async choose(name, candidates) {
    const duty = this.duties.get(name), before = duty.candidates[0];
    duty.candidates = candidates;
    if (!candidates.length) {
      this.duties.delete(name);
      if (duty.caller === this.me) this.open.get(duty.number)?.answer.judge(true);
    } else if (candidates[0] === this.me && before !== this.me) await this.answer(duty);
  }

  async answer({ group, caller, number, body }) {
    let said = [ABSTAINS, Buffer.alloc(0)];
    try {
      if (this.handler) said = [REPLY, await this.handler(group, JSON.parse(caller), body)];
    } catch (error) {
      said = [ERROR, Buffer.from(String(error.message ?? error))];
    }
    await this.say(group, [SAY, JSON.parse(caller), number, ...said]);
  }
}
