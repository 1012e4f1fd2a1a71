/* Fetch the changing parts of the page every ten seconds and put them in place.
   Without this file every page is complete; with it, it stays true. */
"use strict";

addEventListener("DOMContentLoaded", () => {
  const EVERY = 10_000;
  const TIMEOUT = 9_000;
  const KEY = "ddc-live-paused";

  const control = document.querySelector("[data-ddc-live]");
  if (!control) return;
  const button = control.querySelector("button");
  const shownAt = control.querySelector(".ddc-live-at");
  const failed = control.querySelector(".ddc-live-failed");
  const regions = control.dataset.ddcLive.split(" ").filter(Boolean);
  const words = control.dataset;
  let paused = sessionStorage.getItem(KEY) === "1";
  let ended = false;
  let timer = 0;
  let tag = "";

  const address = new URL(words.ddcUrl + location.search, location.href);
  // A theme's fieldset has no name of its own, but keeps the class that it is given.
  const found = (page, name) => page.getElementById(name) ?? page.querySelector(`fieldset.${name}`);

  const isBusy = (region) => region.contains(document.activeElement);

  const isKept = (id) => {
    const region = found(document, id);
    return Boolean(region) && isBusy(region);
  };

  function replace(id, fresh) {
    const region = found(document, id);
    const other = found(fresh, id);
    if (!region || !other || isBusy(region) || region.innerHTML === other.innerHTML) return;
    const open = [...region.querySelectorAll("details")].map((each) => each.open);
    [...other.querySelectorAll("details")].forEach((each, index) => {
      each.open = Boolean(open[index]);
    });
    region.replaceWith(document.importNode(other, true));
  }

  const rowsOf = (table) =>
    new Map(
      [...table.querySelectorAll("tbody tr")].map((row) => [
        row.querySelector("th a")?.getAttribute("href") ?? row.rowIndex,
        row,
      ]),
    );

  // Rows stay where they are, with their checkboxes: only what they say is put in place.
  function replaceCells(id, fresh) {
    const table = document.getElementById(id);
    const other = fresh.getElementById(id);
    if (!table || !other || isBusy(table)) return;
    const rows = rowsOf(other);
    for (const [key, row] of rowsOf(table)) {
      const news = rows.get(key);
      if (!news || news.cells.length !== row.cells.length) continue;
      [...row.cells].forEach((cell, index) => {
        if (cell.classList.contains("action-checkbox")) return;
        if (cell.innerHTML !== news.cells[index].innerHTML) {
          cell.replaceChildren(
            ...[...news.cells[index].childNodes].map((node) => document.importNode(node, true)),
          );
        }
      });
    }
  }

  async function checked(answer) {
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    const text = await answer.text();
    tag = answer.headers.get("ETag") ?? "";
    return new DOMParser().parseFromString(text, "text/html");
  }

  function put(fresh) {
    regions.forEach((id) => replace(id, fresh));
    if (words.ddcRows) replaceCells(words.ddcRows, fresh);
    if (!fresh.querySelector("[data-ddc-live]")) end();
    // A part that somebody is busy with was left as it is: it is fetched again.
    if ([...regions, words.ddcRows].some((id) => id && isKept(id))) tag = "";
  }

  async function update() {
    try {
      const answer = await fetch(address, {
        credentials: "same-origin",
        // The browser keeps no copy of a page of the admin, so the script names what it has.
        headers: tag ? { "If-None-Match": tag } : {},
        signal: AbortSignal.timeout(TIMEOUT),
      });
      if (answer.status !== 304) put(await checked(answer));
      shownAt.textContent = `${words.ddcAt} ${new Date().toLocaleTimeString()}`;
      failed.textContent = "";
    } catch {
      shownAt.textContent = "";
      failed.textContent = words.ddcFailed;
    }
  }

  // What is shown has come to its end: it changes no more.
  function end() {
    ended = true;
    button.hidden = true;
    document.querySelectorAll(".ddc-passing").forEach((each) => each.remove());
  }

  function schedule() {
    clearTimeout(timer);
    if (paused || ended || document.hidden) return;
    timer = setTimeout(async () => {
      await update();
      schedule();
    }, EVERY);
  }

  function show() {
    button.textContent = paused ? words.ddcResume : words.ddcPause;
    button.setAttribute("aria-pressed", String(paused));
  }

  button.addEventListener("click", () => {
    paused = !paused;
    sessionStorage.setItem(KEY, paused ? "1" : "0");
    show();
    schedule();
  });
  document.addEventListener("visibilitychange", async () => {
    if (!document.hidden && !paused && !ended) await update();
    schedule();
  });

  control.hidden = false;
  show();
  schedule();
});
