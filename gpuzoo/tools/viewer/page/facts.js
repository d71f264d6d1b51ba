// Agents with their actions, rewards and returns, and what one of them sees.

import { brief } from "./pad.js";

const $ = (id) => document.getElementById(id);
const digits = (x) => (typeof x === "string" ? x : Number.isInteger(x) ? String(x) : x.toFixed(Math.abs(x) < 10 ? 3 : Math.abs(x) < 1000 ? 2 : 0));
let rows = [], shown = "";

export function showNames(game) {
  shown = "";
  rows = Object.values(game.groups).flatMap((group) => group.agents.map((name) => {
    const row = document.createElement("tr");
    for (let k = 0; k < 4; k++) row.append(document.createElement("td"));
    row.cells[0].textContent = name;
    row.cells[1].className = "act";
    row.onclick = () => document.dispatchEvent(new CustomEvent("agent", { detail: name }));
    row.controls = group.controls.map((part) => ({ ...part, labels: brief(part.labels) }));
    return row;
  }));
  $("agents").tBodies[0].replaceChildren(...rows);
}

function actionText(controls, values) {
  if (controls.length === 2 && values.length === 1) {  // a word together with a move
    const n = controls[1].labels.length;
    return `${controls[0].labels[Math.floor(values[0] / n)]}, ${controls[1].labels[values[0] % n]}`;
  }
  if (values.length === 1 && controls[0].labels.length) return controls[0].labels[values[0]] ?? values[0];
  return values.map(digits).join(" ");
}

export function showState(game, news) {
  rows.forEach((row, k) => {
    if (!news.step) row.cells[1].textContent = row.cells[1].title = "";
    else if (news.actions[k]) row.cells[1].textContent = row.cells[1].title = actionText(row.controls, news.actions[k]);
    row.cells[2].textContent = digits(news.rewards[k]);
    row.cells[3].textContent = digits(news.returns[k]);
    row.classList.toggle("chosen", row.cells[0].textContent === news.agent);
    row.classList.toggle("out", !news.alive[k]);
    row.cells[0].style.fontWeight = news.turn === k ? "700" : "";
  });
  const group = Object.values(game.groups).find((one) => one.agents.includes(news.agent));
  const about = group.observation;
  if (shown !== news.agent) {
    shown = news.agent;
    $("space").textContent = about.text;
    $("observation").replaceChildren();
  }
  if (about.shape.length >= 2) showChannels(about, news.observation);
  else showNumbers(about, news.observation);
}

// The index and the name of each number.
function labels(names, size) {
  const out = Object.entries(names).flatMap(([name, n]) => Array(n).fill(name));
  return Array.from({ length: size }, (_, k) => `${k}  ${out.length === size ? out[k] : ""}`);
}

function showNumbers(about, numbers) {
  const place = $("observation");
  if (place.children.length !== numbers.length) {
    const names = labels(about.names, numbers.length);
    place.replaceChildren(...numbers.map((_, k) => {
      const row = document.createElement("div"), name = document.createElement("span"), bar = document.createElement("i");
      row.className = "number";
      name.textContent = name.title = names[k];
      bar.append(document.createElement("b"));
      row.append(name, bar, document.createElement("output"));
      return row;
    }));
  }
  const bound = about.high !== null && about.low !== null ? Math.max(Math.abs(about.low), Math.abs(about.high)) : 0;
  const finite = numbers.filter((x) => typeof x === "number").map(Math.abs);
  const most = bound && bound < 1e6 ? bound : Math.max(1e-9, ...finite);
  const signed = about.low === null || about.low < 0;
  numbers.forEach((x, k) => {
    const row = place.children[k], fill = row.children[1].firstChild, share = typeof x === "number" ? Math.min(Math.abs(x) / most, 1) : 0;
    row.children[2].textContent = digits(x);
    fill.className = x < 0 ? "minus" : "";
    fill.style.width = `${share * (signed ? 50 : 100)}%`;
    fill.style.left = signed ? `${x < 0 ? 50 - 50 * share : 50}%` : "0";
  });
}

// Planes of an observation with several axes, each as a small picture.
function showChannels(about, numbers) {
  const place = $("observation"), shape = about.shape;
  const names = Object.keys(about.names);
  let [height, width, planes] = [shape[0], shape[1], shape.length > 2 ? shape[2] : 1], last = true;
  if (shape.length === 3 && names.length === shape[0] && names.length !== shape[2]) [planes, height, width, last] = [...shape, false];
  if (place.firstChild?.className !== "channels") {
    const all = document.createElement("div");
    all.className = "channels";
    for (let c = 0; c < planes; c++) {
      const figure = document.createElement("figure"), canvas = document.createElement("canvas"), text = document.createElement("figcaption");
      [canvas.width, canvas.height] = [width, height];
      figure.classList.toggle("wide", width > 4 * height);
      text.textContent = names.length === planes ? names[c] : planes > 1 ? `channel ${c}` : "";
      figure.append(canvas, text);
      all.append(figure);
    }
    place.replaceChildren(all);
  }
  const low = Math.min(0, ...numbers), high = Math.max(1e-9, ...numbers);
  [...place.firstChild.children].forEach((figure, c) => {
    const pen = figure.firstChild.getContext("2d"), image = pen.createImageData(width, height);
    for (let k = 0; k < width * height; k++) {
      const x = numbers[last ? k * planes + c : c * width * height + k] ?? 0;
      const share = (x - low) / (high - low);
      image.data.set([20 + 46 * share, 26 + 140 * share, 36 + 200 * share, 255], 4 * k);
    }
    pen.putImageData(image, 0, 0);
  });
}
