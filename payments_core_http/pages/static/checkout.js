// The checkout page keeps itself up to date, counts down, shows times as the payer's own, and leads
// back to the merchant. Without it the page says the same.
const checkout = (() => {
  const LONGEST_MS = 60_000;
  const ANSWER_TIMEOUT_MS = 30_000;
  const TICK_MS = 1_000;
  const LONGEST_TICK_MS = 5_000;
  let failures = 0;
  let timer = 0;
  let newest = null; // the request for the newest page
  // Instants of this device's calendar clock: a monotonic clock may stop while the device sleeps.
  let tickedAt = Date.now();
  let endsAt = null; // when the time to pay ends, as of the newest answer; null if it has ended
  const listeners = [];
  let leaving = 0; // the timer of the way back
  let isStaying = false;
  let framing; // the origin of the shop's page that frames this one, which the service has checked

  const main = () => document.querySelector("main");

  // Only that origin hears it.
  const tell = (type, facts = {}) => {
    if (framing) window.parent.postMessage({ type: `payments-checkout:${type}`, ...facts }, framing);
  };

  const measure = () => Math.ceil(document.body.getBoundingClientRect().height);

  // In a frame a link to this page stays there, and any other page has a tab of its own. The way back
  // is the shop's whole page; so is the way to a wallet app, which a policy of the shop would stop.
  const fitFrame = () => {
    if (!framing) return;
    const keep = (url) => {
      const kept = new URL(url);
      kept.searchParams.set("frame", framing);
      return kept.href;
    };
    const here = location.origin + location.pathname;
    for (const link of document.querySelectorAll("a:not([target])")) {
      if (link.origin + link.pathname === here) link.href = keep(link.href);
      else link.target = link.id === "back" || !link.protocol.startsWith("http") ? "_top" : "_blank";
    }
    for (const form of document.forms) {
      form.action = keep(form.action);
      form.addEventListener("submit", submit);
    }
    tell("shown", { stage: main().dataset.stage, height: measure() });
  };

  // The new page as a document: none of its text is ever parsed here as markup. Null while the
  // shown page is the newest, and if a later request has replaced this one.
  const fetchPage = (form) => new Promise((resolve, reject) => {
    newest?.abort();
    const request = newest = new XMLHttpRequest();
    const askedAt = Date.now();
    request.open(form ? "POST" : "GET", form ? form.action : location.href);
    request.setRequestHeader("If-None-Match", `"${main().dataset.etag}"`);
    request.responseType = "document";
    request.timeout = ANSWER_TIMEOUT_MS;
    request.onload = () => {
      const { status, response } = request;
      if (status === 304 || (response && (status === 200 || form))) {
        setTimeLeft(request.getResponseHeader("Payment-Left-Ms"), askedAt);
        resolve(status === 304 ? null : response);
      } else reject(new Error(String(status)));
    };
    request.onerror = request.ontimeout = () => reject(new Error("network"));
    request.onabort = () => resolve(null);
    request.send(form && new URLSearchParams(new FormData(form)));
  });

  const refresh = async (form) => {
    const fresh = await fetchPage(form);
    if (!fresh || fresh.querySelector("main").dataset.etag === main().dataset.etag) return;
    const heading = main().querySelector("h1").textContent;
    const focused = document.activeElement?.id;
    const chosen = [...main().querySelectorAll(":checked")].map(({ id }) => id);
    const unfolded = [...main().querySelectorAll("details[open]")].map(({ id }) => id);
    document.title = fresh.title;
    main().replaceWith(document.adoptNode(fresh.querySelector("main")));
    // What the payer had chosen, unfolded and reached is as it was, if it is still there.
    for (const id of chosen) {
      const choice = document.getElementById(id);
      if (choice) choice.checked = true;
    }
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    const now = main().querySelector("h1").textContent;
    if (now !== heading) document.getElementById("news").textContent = now;
    prepare();
  };

  // In a frame a form leads nowhere: the page of its error may not be framed.
  const submit = async (event) => {
    event.preventDefault();
    const button = event.target.querySelector("button");
    button.disabled = true;
    try {
      await refresh(event.target);
    } catch {
      // Nothing was answered: the payer may press again.
    }
    button.disabled = false;
    schedule();
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

  // Of an answer to a request of this instant: its way counts as time that has passed.
  const setTimeLeft = (leftMs, askedAt) => {
    if (leftMs) endsAt = askedAt + Number(leftMs);
  };

  const showTimeLeft = () => {
    const place = document.querySelector("[data-left-ms]");
    if (!place || endsAt === null) return;
    const left = Math.max(0, endsAt - Date.now());
    const seconds = Math.ceil(left / 1000);
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    place.textContent = parts.map((part) => String(part).padStart(2, "0")).join(":");
    if (left === 0) {
      endsAt = null; // until an answer says that there is time
      poll();
    }
  };

  const tick = () => {
    const passed = Math.abs(Date.now() - tickedAt);
    tickedAt = Date.now();
    showTimeLeft();
    if (passed > LONGEST_TICK_MS) poll(); // the device slept, or its clock was set
  };

  // Times are in UTC for those without scripts. The hour stays on one line.
  const showLocalTimes = () => {
    const format = new Intl.DateTimeFormat(`${document.documentElement.lang}-u-nu-latn`, {
      year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit",
      timeZoneName: "short",
    });
    for (const time of document.querySelectorAll("time")) {
      time.firstElementChild.textContent = format.format(new Date(time.dateTime))
        .replace(/[^\s,،][^,،]*$/, (hour) => hour.replace(/\s/g, "\u00a0"));
    }
  };

  // Nobody is led away twice who came back, or who wants to stay.
  const planReturn = () => {
    const back = document.querySelector("[data-return-ms]");
    const [{ type } = {}] = performance.getEntriesByType("navigation");
    if (!back || framing || isStaying || leaving || type === "back_forward") return;
    document.getElementById("returning").hidden = false;
    document.getElementById("stay").addEventListener("click", () => {
      isStaying = true;
      clearTimeout(leaving);
      document.getElementById("returning").hidden = true;
      document.getElementById("back").focus();
    });
    leaving = setTimeout(() => { document.getElementById("back")?.click(); }, Number(back.dataset.returnMs));
  };

  const prepare = () => {
    document.getElementById("print")?.addEventListener("click", () => { window.print(); });
    showTimeLeft();
    showLocalTimes();
    planReturn();
    fitFrame();
    for (const listener of listeners) listener();
  };

  document.addEventListener("DOMContentLoaded", () => {
    if (!document.querySelector("[data-stage]")) return;
    if (window.parent !== window) framing = main().dataset.frame;
    setTimeLeft(document.querySelector("[data-left-ms]")?.dataset.leftMs, tickedAt);
    prepare();
    setInterval(tick, TICK_MS);
    schedule();
    document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
    window.addEventListener("online", poll);
    new ResizeObserver(() => { tell("resized", { height: measure() }); }).observe(document.body);
    document.addEventListener("keydown", ({ key }) => { if (key === "Escape") tell("left"); });
    window.addEventListener("pageshow", ({ persisted }) => { if (persisted) poll(); });
  });

  return {
    // Shows the newest page; polls often from then on if that page says so.
    update: poll,
    // Calls the function whenever another page is shown.
    onShown: (listener) => { listeners.push(listener); },
  };
})();
