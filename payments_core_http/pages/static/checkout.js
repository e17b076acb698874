// The checkout page keeps itself up to date, counts down, and copies. Without it the page says the
// same. It loads in the head, so that what only a script can do is there when the page is painted.
"use strict";

document.documentElement.classList.add("js");

(() => {
  const POLL_MS = 10_000;
  const LONGEST_MS = 60_000;
  const COPIED_MS = 2_000;
  let tag = null;
  let wait = POLL_MS;
  let timer = 0;
  let shownAt = performance.now();

  const main = () => document.querySelector("main");

  // The page again, as a document: no text of it is ever parsed here as markup.
  const fetchPage = () => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    request.onload = () => request.status === 200 && request.response
      ? resolve(request.response) : reject(new Error(String(request.status)));
    request.onerror = () => reject(new Error("network"));
    request.send();
  });

  const replacePage = async () => {
    const fresh = await fetchPage();
    const heading = main().querySelector("h1").textContent;
    document.title = fresh.title;
    for (const name of ["header", "main"]) {
      document.querySelector(name).replaceWith(document.adoptNode(fresh.querySelector(name)));
    }
    shownAt = performance.now();
    const now = main().querySelector("h1").textContent;
    if (now !== heading) document.getElementById("news").textContent = now;
    prepare();
  };

  // Whether the Payment's state is another one than when it was last asked for.
  const hasChanged = async ({ payment, secret }) => {
    const headers = { Authorization: `Bearer ${secret}` };
    if (tag) headers["If-None-Match"] = tag;
    const answer = await fetch(`/v2/public/payments/${payment}/state`, {
      headers, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer",
    });
    if (answer.status === 304) return false;
    if (!answer.ok) throw new Error(String(answer.status));
    tag = answer.headers.get("ETag");
    const state = await answer.json();
    return String(state.statusVersion) !== main().dataset.version;
  };

  const poll = async () => {
    clearTimeout(timer);
    const { mayChange, secret, stage } = main().dataset;
    if (!mayChange) return;
    if (!document.hidden) {
      try {
        // Blocks on top of a transfer change the page, and not the state.
        if (!secret || stage === "processing" || await hasChanged(main().dataset)) {
          await replacePage();
        }
        wait = POLL_MS;
      } catch {
        wait = Math.min(2 * wait, LONGEST_MS);
      }
    }
    timer = setTimeout(poll, wait);
  };

  const showTimeLeft = () => {
    const place = document.querySelector("[data-left-ms]");
    if (!place) return;
    const left = Math.max(0, Number(place.dataset.leftMs) - (performance.now() - shownAt));
    const seconds = Math.ceil(left / 1000);
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    place.textContent = parts.map((part) => String(part).padStart(2, "0")).join(":");
    if (left === 0) {
      delete place.dataset.leftMs;
      replacePage().catch(() => {});
    }
  };

  const copy = async (event) => {
    const button = event.currentTarget;
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    const label = button.textContent;
    button.textContent = button.dataset.done;
    document.getElementById("news").textContent = button.dataset.done;
    setTimeout(() => { button.textContent = label; }, COPIED_MS);
  };

  const prepare = () => {
    for (const button of document.querySelectorAll("button[data-done]")) {
      button.disabled = !navigator.clipboard;
      button.addEventListener("click", copy);
    }
    showTimeLeft();
  };

  document.addEventListener("DOMContentLoaded", () => {
    if (!document.querySelector("[data-stage]")) return;
    prepare();
    setInterval(showTimeLeft, 1_000);
    timer = setTimeout(poll, POLL_MS);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
  });
})();
