// Replays the recorded transcript against a daemon: `node replay.mjs SOCKET TRANSCRIPT`.
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { pack, unpack, Wire } from "./semcast_client.mjs";

const [, , path, transcript] = process.argv;
const wires = {};
const known = {};
let skip = [];

const isName = (value) => typeof value === "string" && value.startsWith("$");
const isPacked = (value) => value !== null && typeof value === "object" && "packed" in value;
const isBytes = (value) => value !== null && typeof value === "object" && "bytes" in value;

function filled(value) {
  if (isName(value)) return known[value];
  if (Array.isArray(value)) return value.map(filled);
  if (isPacked(value)) return pack(filled(value.packed));
  return isBytes(value) ? Buffer.from(value.bytes, "hex") : value;
}

function matches(wanted, found) {
  if (wanted === "*") return true;
  if (isName(wanted)) return isDeepStrictEqual((known[wanted] ??= found), found);
  if (Array.isArray(wanted)) {
    return Array.isArray(found) && wanted.length === found.length && wanted.every((each, n) => matches(each, found[n]));
  }
  if (isPacked(wanted)) return matches(wanted.packed, unpack(found)[0]);
  return isBytes(wanted) ? Buffer.from(wanted.bytes, "hex").equals(found) : wanted === found;
}

const lines = readFileSync(transcript, "utf8").trim().split("\n");
for (const [number, line] of lines.entries()) {
  const step = JSON.parse(line);
  skip = step.skip ?? skip;
  if (!step.at) continue;
  const wire = (wires[step.at] ??= new Wire(path));
  if (step.say) {
    wire.say(filled(step.say));
    continue;
  }
  let found = await wire.hear();
  while (found !== null && skip.includes(found[0])) found = await wire.hear();
  const wanted = step.closed ? null : step.hear;
  if (!matches(wanted, found)) {
    console.error(`line ${number + 1}: ${JSON.stringify(wanted)} was recorded, ${JSON.stringify(found)} came`);
    process.exit(1);
  }
}
console.log(`${lines.length} steps, all as recorded`);
for (const wire of Object.values(wires)) wire.socket.destroy();
