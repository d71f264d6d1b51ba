// How a person plays: buttons and sliders for each part of an action, keys, and a finger or mouse on the picture.

const ARROWS = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "space" };

const MANY = 12;  // of so many actions those that are illegal now are not shown

// Labels without the words that all begin with, but for the last of these.
export function brief(labels) {
  const words = labels.map((label) => label.split(" "));
  let same = 0;
  while (labels.length > 1 && words.every((one) => one.length > same + 1 && one[same] === words[0][same])) same++;
  return words.map((one) => one.slice(Math.max(0, same - 1)).join(" "));
}

export class Pad {
  constructor(place, hint, picture, say) {
    Object.assign(this, { place, hint, picture, say, parts: [], waits: false, held: new Map() });
    document.addEventListener("keydown", (event) => this.key(event, true));
    document.addEventListener("keyup", (event) => this.key(event, false));
    addEventListener("blur", () => this.release());
    picture.addEventListener("pointerdown", (event) => {
      if (!this.parts.length) return;
      picture.setPointerCapture(event.pointerId);
      this.point(event, true);
    });
    picture.addEventListener("pointermove", (event) => this.pointing && this.point(event, false));
    for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => this.lift());
  }

  // Shows the controls of a group; true if the game should wait for each move.
  play(parts) {
    this.parts = parts;
    this.whole = parts.length > 1 && parts.every((part) => part.still === null);  // chosen part by part, and sent together
    this.values = parts.map((part) => part.still ?? (this.whole ? part.high : part.low));
    this.rest = [...this.values];
    this.waits = parts.some((part) => part.still === null);
    this.shown = Object.values(parts[0].keys);  // on a board, what has a button
    this.place.replaceChildren(...parts.map((part, k) => this.row(part, k)));
    if (this.whole) {
      const go = Object.assign(document.createElement("button"), { textContent: "Go", className: "main", onclick: () => this.send(true) });
      go.append(Object.assign(document.createElement("kbd"), { textContent: "Enter" }));
      this.place.append(go);
    }
    this.place.hidden = this.hint.hidden = false;
    const ways = parts.some((part) => Object.keys(part.keys).some((key) => key.startsWith("Arrow")));
    this.board = parts[0].board;
    const column = !this.board && parts.length === 1 && parts[0].labels.length && parts[0].labels.every((label) => /column \d+$/.test(label));
    this.columns = column ? parts[0].labels.length : 0;
    this.hint.textContent = this.board ? "Click or touch the picture: a place, or a piece and then where it goes." : column ? "Click or touch a column of the picture, or press its number."
      : ways ? "Use the arrow keys, the buttons, or press on the picture in the direction you want." : "Use the keys, buttons or sliders.";
    return this.waits;
  }

  leave() {
    this.parts = [];
    this.held.clear();
    this.place.replaceChildren();
    this.place.hidden = this.hint.hidden = true;
  }

  knows(key) {
    return this.parts.some((part) => key in part.keys);
  }

  row(part, k) {
    const row = document.createElement("div");
    row.className = "part";
    if (part.name) row.append(Object.assign(document.createElement("span"), { textContent: part.name }));
    if (part.labels.length) {
      brief(part.labels).forEach((label, value) => {
        if (part.board && !this.shown.includes(value)) return;
        const button = document.createElement("button");
        button.textContent = label;
        button.dataset.value = value;
        const keys = Object.keys(part.keys).filter((one) => part.keys[one] === value);
        const key = keys.find((one) => !/\d/.test(one)) ?? keys[0];
        if (key) button.append(Object.assign(document.createElement("kbd"), { textContent: ARROWS[key] ?? key }));
        if (part.held) {
          button.onpointerdown = (event) => { event.preventDefault(); this.press(`button ${k}`, k, value); };
          button.onpointerup = button.onpointerleave = button.onpointercancel = () => this.release(`button ${k}`);
          button.onclick = (event) => event.detail === 0 && (this.press(`button ${k}`, k, value), this.release(`button ${k}`));
        } else button.onclick = () => this.set(k, value);
        row.append(button);
      });
      return row;
    }
    const slider = Object.assign(document.createElement("input"), { type: "range", min: part.low, max: part.high, value: this.values[k] });
    slider.step = part.whole ? 1 : (part.high - part.low) / 200;
    slider.setAttribute("aria-label", part.name);
    slider.oninput = () => this.set(k, part.whole ? Math.round(Number(slider.value)) : Math.min(Math.max(Number(slider.value), part.low), part.high));
    row.append(slider, document.createElement("output"));
    return row;
  }

  set(k, value) {  // stays
    this.rest[k] = value;
    this.send(!this.whole);
  }

  press(who, k, value) {  // as long as it is held
    this.held.set(who, [k, value]);
    this.send(true);
  }

  release(who) {
    if (who ? this.held.delete(who) : this.held.size && (this.held.clear(), true)) this.send(false);
  }

  send(go) {
    this.values = [...this.rest];
    for (const [k, value] of this.held.values()) this.values[k] = value;
    this.say({ do: "act", values: this.values, go });
    this.light();
  }

  light() {
    [...this.place.children].slice(0, this.parts.length).forEach((row, k) => {
      for (const button of row.querySelectorAll("button")) button.classList.toggle("on", Number(button.dataset.value) === this.values[k] && (this.held.size > 0 || !this.parts[k].held));
      const slider = row.querySelector("input");
      if (slider) [slider.value, row.querySelector("output").textContent] = [this.values[k], Number(this.values[k]).toPrecision(3)];
    });
  }

  state(news) {
    if (!this.parts.length) return;
    if (this.board) {
      const shown = [...new Set([...Object.values(this.parts[0].keys), ...news.buttons])];
      if (String(shown) !== String(this.shown)) {
        this.shown = shown;
        this.place.replaceChild(this.row(this.parts[0], 0), this.place.children[0]);
      }
    }
    const sizes = this.parts.map((part) => part.high - part.low + 1);
    const mask = news.mask?.length === sizes.reduce((a, b) => a + b, 0) ? news.mask : null;
    let first = 0;
    [...this.place.children].slice(0, sizes.length).forEach((row, k) => {
      const legal = mask?.slice(first, first + sizes[k]);
      if (this.whole && legal && !legal[this.rest[k]]) this.rest[k] = this.values[k] = Math.max(0, legal.lastIndexOf(1));
      for (const button of row.querySelectorAll("button")) {
        const illegal = Boolean(mask && this.waits && news.my_turn && !mask[first + Number(button.dataset.value)]);
        button.disabled = illegal;
        button.hidden = illegal && sizes[k] > MANY;
      }
      first += sizes[k];
    });
    if (this.whole) this.light();
  }

  key(event, down) {
    if (!this.parts.length || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range") return;
    if (this.whole && event.key === "Enter" && event.target.tagName !== "BUTTON") {
      if (down) this.send(true);
      return;
    }
    const k = this.parts.findIndex((part) => event.key in part.keys);
    if (k < 0) return;
    event.preventDefault();
    const part = this.parts[k];
    if (!down) this.release(`key ${event.key}`);
    else if (!part.held) this.set(k, part.keys[event.key]);
    else if (!event.repeat || this.waits) this.press(`key ${event.key}`, k, part.keys[event.key]);
  }

  // The picture is a joystick around its middle, or columns to drop something into.
  point(event, first) {
    const box = this.picture.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width - 0.5, y = (event.clientY - box.top) / box.height - 0.5;
    if (this.board) {
      if (first) this.say({ do: "press", x: x + 0.5, y: y + 0.5 });
      return;
    }
    if (this.columns) {
      if (first) this.press("picture", 0, Math.min(Math.max(Math.floor((x + 0.5) * this.columns), 0), this.columns - 1));
      return;
    }
    const wide = Math.abs(x) > 0.1, high = Math.abs(y) > 0.1, across = Math.abs(x) >= Math.abs(y);
    const keys = [wide && (x < 0 ? "ArrowLeft" : "ArrowRight"), high && (y < 0 ? "ArrowUp" : "ArrowDown")];
    if (!across) keys.reverse();
    const now = [], used = new Set();
    for (const key of keys.filter(Boolean)) {
      const k = this.parts.findIndex((part) => key in part.keys);
      if (k >= 0 && !used.has(k)) { used.add(k); now.push([k, this.parts[k].keys[key]]); }
    }
    const text = JSON.stringify(now);
    if (this.pointing === text) return;
    this.pointing = text;
    for (const who of [...this.held.keys()]) if (who.startsWith("picture")) this.held.delete(who);
    for (const [k, value] of now) this.held.set(`picture ${k}`, [k, value]);
    this.send(first && now.length > 0);
  }

  lift() {
    this.pointing = "";
    const mine = [...this.held.keys()].filter((who) => who.startsWith("picture"));
    for (const who of mine) this.held.delete(who);
    if (mine.length) this.send(false);
  }
}
