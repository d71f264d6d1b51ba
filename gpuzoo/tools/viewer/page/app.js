// The page of `gpuzoo view`: what the server tells is drawn, what the buttons say is sent.
import { Pad } from "./pad.js";
import { showNames, showState } from "./facts.js";
import { showParameters } from "./parameters.js";

const $ = (id) => document.getElementById(id);
const picture = $("picture");
const pen = picture.getContext("2d");
let socket, game, wanted, games = [], playing = true, retry = 500;  // wanted: the game that is shown or asked for

export function say(words) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(words));
}

function problem(text) {
  $("problem").hidden = !text;
  $("problem").textContent = text || "";
}

function ask(words) {  // for what a person asked: the last problem is no more
  problem("");
  say(words);
}

const pad = new Pad($("pad"), $("hint"), picture, say);

// ---- the list of games ----

function open(id) {
  wanted = id;
  ask({ do: "open", game: id, envs: Number($("wall").value) });
}

function showGames() {
  const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (one) => {
    const text = `${one.id} ${one.who} ${Object.values(one.action).join(" ")} ${one.description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const shown = games.filter(fits);
  $("count").textContent = `${shown.length} of ${games.length} games`;
  $("games").replaceChildren(...shown.map((one) => {
    const item = document.createElement("li"), button = document.createElement("button"), small = document.createElement("small");
    button.append(one.id, small);
    small.textContent = one.who;
    button.title = one.description;
    button.setAttribute("aria-current", String(game?.id === one.id));
    button.onclick = () => {
      open(one.id);
      if (matchMedia("(max-width: 760px)").matches) $("picker").open = false;
    };
    item.append(button);
    return item;
  }));
}

function toCurrent() {  // the list shows the game that is played
  const entry = $("games").querySelector('[aria-current="true"]');
  if (entry) $("games").scrollTop = entry.offsetTop - $("games").offsetTop - 60;
}

// ---- what the server says ----

const heard = {
  games(news) {
    games = news.games;
    $("wall").replaceChildren(...news.walls.map((n) => new Option(n === 1 ? "one" : `${n}`, n)));
    showGames();
  },
  busy(news) {
    $("busy").hidden = false;
    $("busy").textContent = `${news.text} …`;
  },
  game(news) {
    const same = game?.id === news.id;
    game = news;
    wanted = news.id;
    document.title = `${news.id} · gpuzoo`;
    $("title").textContent = news.id;
    $("about").textContent = news.about;
    $("wall").value = news.envs;
    const all = Object.values(news.groups).flatMap((group) => group.agents);
    const options = () => all.map((agent) => new Option(agent, agent));
    $("agent").replaceChildren(...options());
    $("person").replaceChildren(new Option("nobody", ""), ...options());
    pad.leave();
    $("waits-label").hidden = true;
    showPlayers();
    showNames(news);
    showParameters($("parameters"), news, ask, same);
    showGames();
    if (!same) toCurrent();
    $("busy").hidden = true;
  },
  state(news) {
    $("busy").hidden = true;
    $("agent").value = news.agent;
    const limit = game.limit ? ` of ${game.limit}` : "";
    const which = game.envs > 1 ? `env ${news.env} · ` : "";
    $("clock").textContent = `${which}step ${news.step}${limit} · seed ${news.seed} · episode ${news.episode}${news.over ? " · over" : ""}${pad.waits && news.my_turn && pad.parts.length ? " · your move" : ""}`;
    showState(game, news);
    pad.state(news);
  },
  players(news) {
    for (const [group, player] of Object.entries(news.players)) game.groups[group].player = player;
    showPlayers();
  },
  person(news) {
    $("person").value = news.agent ?? "";
    $("waits").checked = news.waits;
  },
  error(news) {
    $("busy").hidden = true;
    problem(news.text);
    if (game) showPlayers();
  },
};

async function paint(data) {
  const image = await createImageBitmap(data);
  if (picture.width !== image.width || picture.height !== image.height) [picture.width, picture.height] = [image.width, image.height];
  pen.drawImage(image, 0, 0);
  image.close();
  say({ do: "seen" });
}

function showPlayers() {
  $("players").replaceChildren(...Object.entries(game.groups).map(([name, group]) => {
    const label = document.createElement("label"), select = document.createElement("select");
    select.append(...game.players.map((player) => new Option(player, player)));
    select.value = group.player;
    select.onchange = () => ask({ do: "player", group: name, player: select.value });
    label.append(`${name} (${group.agents.length})`, select);
    return label;
  }));
}

// ---- what a person asks for ----

function setPlaying(now) {
  playing = now;
  $("play").textContent = now ? "Pause" : "Play";
}
$("play").onclick = () => {
  ask({ do: playing ? "pause" : "play" });
  setPlaying(!playing);
};
$("step").onclick = () => {
  ask({ do: "step" });
  setPlaying(false);
};
$("reset").onclick = () => ask({ do: "reset", seed: Number($("seed").value) });
$("seed").onchange = $("reset").onclick;
$("speed").oninput = () => {
  const speed = 2 ** Number($("speed").value);
  $("speed-out").textContent = `${speed < 1 ? speed.toPrecision(2) : Math.round(speed * 10) / 10}×`;
  ask({ do: "speed", speed });
};
$("wall").onchange = () => open(wanted);
$("agent").onchange = () => ask({ do: "look", agent: $("agent").value });
$("filter").oninput = () => {
  showGames();
  toCurrent();
};
$("person").onchange = () => {
  const agent = $("person").value || null;
  const group = Object.values(game.groups).find((one) => one.agents.includes(agent));
  pad.leave();
  $("waits-label").hidden = !agent;
  if (agent) {
    const waits = pad.play(group.controls);
    $("waits").checked = waits;
    picture.focus({ preventScroll: true });
  }
  ask({ do: "person", agent, waits: Boolean(agent) && $("waits").checked });
};
$("waits").onchange = () => {
  pad.waits = $("waits").checked;
  ask({ do: "person", agent: $("person").value, waits: pad.waits });
};
picture.addEventListener("click", (event) => {
  if (!game || game.envs === 1) return;
  const box = picture.getBoundingClientRect(), side = Math.ceil(Math.sqrt(game.envs));
  const column = Math.floor(((event.clientX - box.left) / box.width) * side), row = Math.floor(((event.clientY - box.top) / box.height) * side);
  ask({ do: "look", env: Math.min(row * side + column, game.envs - 1) });
});
document.addEventListener("keydown", (event) => {
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
  const button = { p: "play", ".": "step", r: "reset" }[event.key];
  if (button && !pad.knows(event.key)) $(button).click();
});
document.addEventListener("agent", (event) => ask({ do: "look", agent: event.detail }));
if (matchMedia("(max-width: 760px)").matches) $("picker").open = false;

// ---- the connection ----

function connect() {
  socket = new WebSocket(`ws://${location.host}/live`);
  socket.binaryType = "blob";
  socket.onopen = () => {
    retry = 500;
    problem("");
    setPlaying(true);
  };
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") {
      const news = JSON.parse(data);
      heard[news.kind]?.(news);
    } else paint(data);
  };
  socket.onclose = (event) => {
    problem(event.reason || "The viewer does not answer: is `gpuzoo view` still running? This page tries again.");
    setTimeout(connect, (retry = Math.min(2 * retry, 8000)));
  };
}
connect();
