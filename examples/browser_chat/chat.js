// A chat over the daemon's WebSocket: semcast-client.json.1, without packages (docs/client-protocol.md).
// The address may say who you are: index.html#name=alice&token=SECRET
const GROUP = "chat";
const options = new URLSearchParams(location.hash.slice(1));
const numbered = new Set([8, 11, 12, 14, 17, 18, 23, 24, 25, 26]);
const show = (id, text) => { document.getElementById(id).textContent = text; };

let seq = 0;
let told = 0;

function line(text, kind = "") {
  const item = document.createElement("li");
  item.className = kind;
  item.textContent = text;
  document.getElementById("lines").append(item);
}

const short = ([name]) => name.split("@")[0];
const encode = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
const decode = (data) => new TextDecoder().decode(Uint8Array.from(atob(data), (c) => c.charCodeAt(0)));

const scheme = location.protocol === "https:" ? "wss" : "ws";
const socket = new WebSocket(`${scheme}://${location.host}/v1`, "semcast-client.json.1");
const say = (...frame) => socket.send(JSON.stringify(frame));

socket.onopen = () => say(1, 1, options.get("name") ?? "", options.get("token") ?? "");
socket.onclose = () => show("members", "the connection is closed: load the page again");
socket.onmessage = ({ data }) => {
  const [kind, ...rest] = JSON.parse(data);
  if (numbered.has(kind)) {
    told += 1;
    say(13, told);
  }
  if (kind === 2) {
    show("who", short(rest[1]));
    say(3, (seq += 1), GROUP);
  } else if (kind === 6) {
    line(rest[2], "event");
  } else if (kind === 8) {
    for (const payload of rest[4]) line(`${short(rest[1])}: ${decode(payload)}`);
  } else if (kind === 11) {
    const [, , members, joined, left, failed] = rest;
    show("members", members.map(short).join(", "));
    if (joined.length) line(`${joined.map(short).join(", ")} came`, "event");
    if (left.length + failed.length) line(`${[...left, ...failed].map(short).join(", ")} went`, "event");
  } else if (kind === 23) {
    line(`this page was put out: ${rest[0]}`, "event");
  }
};

document.getElementById("form").onsubmit = (event) => {
  event.preventDefault();
  const text = document.getElementById("text");
  if (text.value) say(7, (seq += 1), [GROUP], "agreed", [encode(text.value)]);
  text.value = "";
};
