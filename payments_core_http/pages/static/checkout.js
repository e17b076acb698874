// The checkout page keeps itself up to date, counts down, and copies. Without it the page says the
// same. It loads in the head, so that its additions are there when the page is painted.
"use strict";

document.documentElement.classList.add("js");

const checkout = (() => {
  const LONGEST_MS = 60_000;
  const COPIED_MS = 2_000;
  let failures = 0;
  let timer = 0;
  let shownAt = performance.now();
  const listeners = [];

  const main = () => document.querySelector("main");

  // The new page as a document: none of its text is ever parsed here as markup. Null while the
  // shown page is the newest.
  const fetchPage = () => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.setRequestHeader("If-None-Match", `"${main().dataset.etag}"`);
    request.responseType = "document";
    request.onload = () => {
      if (request.status === 304) resolve(null);
      else if (request.status === 200 && request.response) resolve(request.response);
      else reject(new Error(String(request.status)));
    };
    request.onerror = () => reject(new Error("network"));
    request.send();
  });

  const refresh = async () => {
    const fresh = await fetchPage();
    if (!fresh || fresh.querySelector("main").dataset.etag === main().dataset.etag) return;
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

  const poll = async () => {
    clearTimeout(timer);
    if (!main().dataset.pollMs) return;
    if (!document.hidden) {
      try {
        await refresh();
        failures = 0;
      } catch {
        failures += 1;
      }
    }
    schedule();
  };

  const schedule = () => {
    clearTimeout(timer);
    const { pollMs } = main().dataset;
    if (pollMs) timer = setTimeout(poll, Math.min(Number(pollMs) * 2 ** failures, LONGEST_MS));
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
      refresh().catch(() => {});
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
    for (const listener of listeners) listener();
  };

  document.addEventListener("DOMContentLoaded", () => {
    if (!document.querySelector("[data-stage]")) return;
    prepare();
    setInterval(showTimeLeft, 1_000);
    schedule();
    document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
  });

  return {
    // Shows the newest page; polls often from then on if that page says so.
    update: poll,
    // Calls the function whenever another page is shown.
    onShown: (listener) => { listeners.push(listener); },
  };
})();
