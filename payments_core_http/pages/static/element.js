// <payments-checkout client-secret="..." payment-id="..."> shows a Payment's checkout page in a frame of
// a shop's own page, in place or, with the attribute `dialog`, in a dialog. Its events are `paid`,
// `expired` and `closed`. The service puts TEXTS before this: the element's texts, by language.

const NAME = "payments-checkout";
const ROOT = new URL("../", import.meta.url); // of the service, also below a path
const LONGEST_RETRY_MS = 30_000;
const FIRST_WORD_MS = 5_000; // how long a loaded frame may be silent before it counts as refused
const MAX_HEIGHT = 10_000;
const EVENTS = { paid: "paid", expired: "expired", cancelled: "expired" }; // by the page's stage

// What the frame may do. Without its own origin the page could not call its own service.
const SANDBOX = [
  "allow-scripts", "allow-same-origin", "allow-forms",
  "allow-modals", // to print the receipt
  "allow-popups", "allow-popups-to-escape-sandbox", // wallet apps, explorers and providers
  "allow-top-navigation-to-custom-protocols", // wallet apps, by ethereum:
  "allow-top-navigation-by-user-activation", // the way back to the shop
].join(" ");

const SHEET = new CSSStyleSheet();
SHEET.replaceSync(`
  :host { display: block; font-family: var(--payments-font, inherit); }
  :host([dialog]) { display: inline-block; }
  :host([hidden]) { display: none; }
  button {
    border: 0; border-radius: var(--payments-radius, 0.5rem); background: none; color: inherit;
    font: inherit; cursor: pointer;
  }
  [part=button] {
    min-height: 2.75rem; padding: 0.5rem 1.25rem; background: var(--payments-accent, #0b4fb3);
    color: var(--payments-on-accent, #fff); font-weight: 600;
  }
  button:focus-visible { outline: 3px solid var(--payments-focus, #b3480b); outline-offset: 2px; }
  [part=place] {
    position: relative; box-sizing: border-box; min-height: var(--payments-min-height, 20rem);
    overflow: hidden; border: var(--payments-border, 1px solid #d5dae1);
    border-radius: var(--payments-radius, 0.5rem);
  }
  [part=frame] { display: block; width: 100%; height: var(--payments-min-height, 20rem); border: 0; }
  [aria-busy] > [part=frame] { visibility: hidden; }
  [aria-busy]::before {
    content: ""; position: absolute; inset: calc(50% - 1rem); width: 2rem; height: 2rem;
    box-sizing: border-box; border: 3px solid; border-inline-start-color: transparent;
    border-radius: 50%; opacity: 0.4; animation: turn 1s linear infinite;
  }
  @keyframes turn { to { transform: rotate(1turn); } }
  [part=message] { margin: 0; padding: 1rem; text-align: center; }
  [part=message] a { color: inherit; }
  dialog {
    box-sizing: border-box; width: min(var(--payments-width, 46rem), 100%); max-width: none;
    max-height: 100dvh; padding: 0; overflow: hidden; border: 0; background: #f4f6f9; color: #1b1f24;
    border-radius: var(--payments-radius, 0.5rem);
  }
  @media (prefers-color-scheme: dark) { dialog { background: #12161b; color: #e8ebee; } }
  dialog::backdrop { background: var(--payments-backdrop, rgb(0 0 0 / 55%)); }
  dialog [part=place] { border: 0; border-radius: 0; }
  dialog [part=frame] { max-height: calc(100dvh - 5rem); }
  [part=close] {
    display: block; width: 2.75rem; height: 2.75rem; margin-inline-start: auto; font-size: 1.5rem;
  }
  @media (max-width: 40rem) {
    dialog { width: 100%; height: 100%; max-height: none; border-radius: 0; }
    dialog [part=frame] { height: calc(100dvh - 2.75rem) !important; max-height: none; }
  }
  @media (prefers-reduced-motion: reduce) { [aria-busy]::before { animation: none; } }
`);

const make = (tag, attributes, ...content) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
};

const sleep = (ms, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); });
});

// The address of the Payment's page; null if the service refuses the secret. `onFailure` is called
// when the service cannot be reached, before each new attempt. The secret is in a header alone.
const findPage = async ({ paymentId, secret }, signal, onFailure) => {
  const url = new URL(`v2/public/payments/${encodeURIComponent(paymentId)}`, ROOT);
  const request = {
    headers: { Authorization: `Bearer ${secret}` },
    cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer", signal,
  };
  for (let waitMs = 1_000; ; waitMs = Math.min(2 * waitMs, LONGEST_RETRY_MS)) {
    try {
      const answer = await fetch(url, request);
      if (answer.ok) {
        const { paymentUrl } = await answer.json();
        return paymentUrl && new URL(`pay/${paymentUrl.split("/").pop()}`, ROOT);
      }
      if (answer.status < 500 && answer.status !== 429) {
        console.error(`${NAME}: the service refuses payment-id and client-secret (${answer.status}).`);
        return null;
      }
    } catch (error) {
      signal.throwIfAborted();
    }
    onFailure();
    await sleep(waitMs, signal);
  }
};

class PaymentsCheckout extends HTMLElement {
  static observedAttributes = ["client-secret", "payment-id", "dialog", "lang"];

  #root = this.attachShadow({ mode: "open" });
  #secret = null;
  #paymentId = null;
  #shown = null; // what ends with the Payment that is shown, or with the element
  #place = null;
  #dialog = null;
  #frame = null;
  #isLoaded = false; // or is about to be
  #isRenewing = false;
  #told = new Set();

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [SHEET];
  }

  // As a property the secret is in no attribute, where programs that record pages would find it.
  get clientSecret() { return this.#secret; }
  set clientSecret(secret) { this.#change(() => { this.#secret = secret; }); }
  get paymentId() { return this.#paymentId; }
  set paymentId(id) { this.#change(() => { this.#paymentId = id; }); }

  connectedCallback() {
    // A page may have set properties before this script was loaded.
    for (const name of ["clientSecret", "paymentId"]) {
      if (!Object.hasOwn(this, name)) continue;
      const value = this[name];
      delete this[name];
      this[name] = value;
    }
    this.#change(() => {});
  }

  disconnectedCallback() { this.#stop(); }

  attributeChangedCallback(name, old, value) {
    if (value === old) return;
    this.#change(() => {
      if (name === "client-secret") this.#secret = value;
      if (name === "payment-id") this.#paymentId = value;
    });
  }

  // Opens the dialog; without the attribute `dialog` the page is always open.
  open() {
    if (!this.#dialog || this.#dialog.open) return;
    this.#dialog.showModal();
    if (!this.#isLoaded) this.#load();
  }

  // Closes the dialog. Its page goes on, so that `paid` comes also after that.
  close() { this.#dialog?.close(); }

  // Several changes at once, as frameworks make them, are one.
  #change(apply) {
    apply();
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    queueMicrotask(() => {
      this.#isRenewing = false;
      this.#stop();
      if (this.isConnected && this.#secret && this.#paymentId) this.#start();
    });
  }

  #stop() {
    this.#shown?.abort();
    this.#shown = this.#dialog = this.#place = this.#frame = null;
    this.#isLoaded = false;
    this.#root.replaceChildren();
  }

  #start() {
    this.#shown = new AbortController();
    this.#place = make("div", { part: "place" });
    if (!this.hasAttribute("dialog")) {
      this.#root.append(this.#place);
      this.#load();
      return;
    }
    const { pay, close, payment } = this.#texts;
    const opener = make("button", { type: "button", part: "button" }, make("slot", {}, pay));
    const closer = make("button", { type: "button", part: "close", "aria-label": close }, "\u00d7");
    this.#dialog = make("dialog", { part: "dialog", "aria-label": payment }, closer, this.#place);
    opener.addEventListener("click", () => { this.open(); });
    closer.addEventListener("click", () => { this.close(); });
    this.#dialog.addEventListener("close", () => { this.#tell("closed"); });
    this.#root.append(opener, this.#dialog);
  }

  // The language of the shop's page around the element; empty if the service does not have it.
  get #language() {
    const tag = (this.closest("[lang]")?.lang ?? "").split("-")[0].toLowerCase();
    return Object.hasOwn(TEXTS, tag) ? tag : "";
  }

  get #texts() { return TEXTS[this.#language || "en"]; }

  async #load() {
    this.#isLoaded = true;
    const { signal } = this.#shown;
    const place = this.#place;
    const payment = { paymentId: this.#paymentId, secret: this.#secret };
    place.setAttribute("aria-busy", "true");
    place.replaceChildren();
    try {
      const page = await findPage(payment, signal, () => this.#say(this.#texts.unreachable));
      if (page) this.#showFrame(page, signal);
      else this.#refuse();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #showFrame(page, signal) {
    const alone = page.href;
    page.searchParams.set("frame", location.origin);
    if (this.#language) page.searchParams.set("lang", this.#language);
    const frame = make("iframe", {
      part: "frame", title: this.#texts.payment, src: page.href, sandbox: SANDBOX,
      allow: "clipboard-write", referrerpolicy: "no-referrer",
    });
    let timer = 0;
    let isHeard = false;
    window.addEventListener("message", ({ source, origin, data }) => {
      if (source !== frame.contentWindow || origin !== ROOT.origin) return;
      isHeard = true;
      clearTimeout(timer);
      this.#hear(data);
    }, { signal });
    frame.addEventListener("load", () => {
      if (isHeard) return;
      timer = setTimeout(() => {
        console.error(`${NAME}: ${ROOT.origin} has sent no page that ${location.origin} may frame:`
          + " is this origin among allowedOrigins of the payment settings?");
        this.#refuse(alone);
      }, FIRST_WORD_MS);
    }, { signal });
    signal.addEventListener("abort", () => { clearTimeout(timer); });
    this.#frame = frame;
    this.#place.replaceChildren(frame);
  }

  #hear({ type, stage, height }) {
    const word = String(type).replace(`${NAME}:`, "");
    if (word === "left") this.close(); // Escape, which the frame does not pass on
    if (height > 0) this.#frame.style.height = `${Math.min(Number(height), MAX_HEIGHT)}px`;
    if (word !== "shown") return;
    this.#place.removeAttribute("aria-busy");
    const name = Object.hasOwn(EVENTS, stage) ? EVENTS[stage] : null;
    const key = `${name} ${this.#paymentId}`;
    if (!name || this.#told.has(key)) return;
    this.#told.add(key);
    this.#tell(name);
  }

  #refuse(alone) {
    this.#place.removeAttribute("aria-busy");
    this.#say(this.#texts.refused, alone);
  }

  #say(text, url) {
    const message = make("p", { part: "message", role: "alert" }, text);
    if (url) {
      const link = { href: url, target: "_blank", rel: "noopener noreferrer" };
      message.append(" ", make("a", link, this.#texts.alone));
    }
    this.#place.replaceChildren(message);
  }

  #tell(name) {
    const detail = { paymentId: this.#paymentId };
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail }));
  }
}

if (!customElements.get(NAME)) customElements.define(NAME, PaymentsCheckout);
