/* What pages of the documentation do beside showing text. Without this file they show everything, in one piece. */
"use strict";

/* ---- a button that copies, in every block of code ---- */

function addCopyButtons() {
  for (const block of document.querySelectorAll("div.highlight")) {
    const code = block.querySelector("pre");
    if (!code || !navigator.clipboard) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy the code");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.innerText.replace(/\n$/, ""));
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }
}

/* ---- tabs: a container of captioned code blocks ---- */

const CHOSEN = "gpuzoo-library";

function makeTabs(box, number) {
  const panels = [...box.children].filter((child) => child.querySelector(".code-block-caption"));
  const list = document.createElement("div");
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Library");
  const tabs = panels.map((panel, k) => {
    const caption = panel.querySelector(".code-block-caption");
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = `tab-${number}-${k}`;
    tab.textContent = caption.querySelector(".caption-text").textContent.trim();
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", (panel.id = panel.id || `panel-${number}-${k}`));
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    caption.hidden = true;
    list.append(tab);
    return tab;
  });
  const show = (chosen) =>
    tabs.forEach((tab, k) => {
      tab.setAttribute("aria-selected", String(k === chosen));
      tab.tabIndex = k === chosen ? 0 : -1;
      panels[k].hidden = k !== chosen;
    });
  list.addEventListener("click", (event) => {
    const k = tabs.indexOf(event.target);
    if (k < 0) return;
    show(k);
    sessionStorage.setItem(CHOSEN, tabs[k].textContent);
  });
  list.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const k = (tabs.indexOf(document.activeElement) + move + tabs.length) % tabs.length;
    show(k);
    tabs[k].focus();
  });
  box.prepend(list);
  show(Math.max(0, tabs.findIndex((tab) => tab.textContent === sessionStorage.getItem(CHOSEN))));
}

/* ---- films: begin when they are seen, or when somebody points at them ---- */

function startFilms() {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (!still && "IntersectionObserver" in window) {
    const seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) target.play().catch(() => {});
        else target.pause();
      }
    });
    document.querySelectorAll("video.film").forEach((film) => seen.observe(film));
  }
  for (const film of document.querySelectorAll("video.hover")) {
    const card = film.closest("a") || film;
    const play = () => film.play().catch(() => {});
    const stop = () => film.load(); // the poster again
    card.addEventListener("mouseenter", play);
    card.addEventListener("mouseleave", stop);
    card.addEventListener("focus", play);
    card.addEventListener("blur", stop);
    card.addEventListener("touchstart", play, { passive: true });
  }
}

/* ---- filters of the gallery, kept in the address ---- */

function startFilters(form) {
  const shelves = [...document.querySelectorAll("ul.gallery")];
  const apply = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const text = wanted.name.trim().toLowerCase();
    let count = 0;
    for (const shelf of shelves) {
      const rightShelf = !wanted.family || shelf.dataset.family === wanted.family;
      let shown = 0;
      for (const card of shelf.children) {
        const fits = ["agents", "interaction", "actions", "observations"].every(
          (key) => !wanted[key] || card.dataset[key] === wanted[key],
        );
        card.hidden = !(rightShelf && fits && card.textContent.toLowerCase().includes(text));
        shown += !card.hidden;
      }
      shelf.closest("section").hidden = !shown;
      count += shown;
    }
    form.querySelector("output").textContent = count === 1 ? "1 game" : `${count} games`;
    const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    history.replaceState(null, "", query.size ? `#${query}` : location.pathname + location.search);
  };
  const given = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const [key, value] of given) if (form.elements[key]) form.elements[key].value = value;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}

/* ---- tables that a click on a heading sorts ---- */

function makeSortable(table) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (!x || !y) return Number(!x) - Number(!y); // what has no value comes last
        const sign = down ? -1 : 1;
        const numbers = [Number(x), Number(y)];
        return sign * (numbers.some(Number.isNaN) ? x.localeCompare(y) : numbers[0] - numbers[1]);
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}

document.addEventListener("DOMContentLoaded", () => {
  addCopyButtons();
  document.querySelectorAll("div.tabs").forEach(makeTabs);
  startFilms();
  document.querySelectorAll("form.filters").forEach(startFilters);
  document.querySelectorAll("table.sortable").forEach(makeSortable);
});
