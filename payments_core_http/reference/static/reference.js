// Search, and trying routes out. The page says everything without it.
//
// Credentials are only in the form's fields: they are never stored, and sent only to the origin
// that served this page.
"use strict";

const mode = document.body.dataset.mode;
const operations = new Map();

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function field(text, control) {
  return element("label", {}, text, control);
}

// Search

function startSearch() {
  const input = document.getElementById("words");
  const found = document.getElementById("found");
  const articles = [...document.querySelectorAll("main article")];
  const texts = new Map(articles.map((it) => [it, it.textContent.toLowerCase()]));
  const entries = [...document.querySelectorAll("nav li[data-operation]")];
  document.getElementById("search").hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (article) => words.every((word) => texts.get(article).includes(word));
    let count = 0;
    for (const article of articles) {
      article.hidden = !fits(article);
      count += article.hidden ? 0 : 1;
    }
    for (const entry of entries) {
      entry.hidden = document.getElementById(entry.dataset.operation).hidden;
    }
    found.textContent = words.length ? `${count} found` : "";
  });
  // A link to a part that the search has hidden must still work.
  window.addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.closest("[hidden]")) {
      input.value = "";
      input.dispatchEvent(new Event("input"));
      target.scrollIntoView();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, textarea")) {
      event.preventDefault();
      input.focus();
    }
  });
}

// Credentials

const keys = {};

function keyField(name, text, secret = true) {
  keys[name] = element("input", {
    type: secret ? "password" : "text",
    autocomplete: "off",
    spellcheck: false,
  });
  return field(text, keys[name]);
}

function startKeys() {
  const form = element("form", { autocomplete: "off" });
  form.append(element("p", {}, "Use these credentials to try out routes. The page does not store them, and forgets them when it is reloaded."));
  if (mode === "sandbox") {
    form.append(keyField("appId", "App id", false), keyField("appSecret", "App secret"));
  } else {
    form.append(
      element("p", {}, "Never give an app secret to a browser: routes that need one cannot be tried out here."),
    );
  }
  form.append(
    keyField("accessToken", "Access token"),
    keyField("sessionToken", "Session token"),
    keyField("paymentSecret", "Payment client secret"),
  );
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("keys").append(form);
}

function value(name) {
  return keys[name] ? keys[name].value.trim() : "";
}

function basic() {
  const bytes = new TextEncoder().encode(`${value("appId")}:${value("appSecret")}`);
  return "Basic " + btoa(String.fromCharCode(...bytes));
}

function credentialsFor(operation) {
  const headers = {};
  const ways = operation.security.map((way) => Object.keys(way));
  const complete = (way) =>
    way.every((name) => name !== "paymentSecretHeader" || value("paymentSecret"));
  // The scheme with the most given credentials; else the first, and the response says why it failed.
  const way = ways.filter(complete).sort((one, other) => other.length - one.length)[0] || ways[0];
  for (const name of way || []) {
    if (name === "appSecret") headers.Authorization = basic();
    else if (name === "appId") headers.Authorization = "Basic " + btoa(value("appId"));
    else if (name === "appSecretAsBearer") headers.Authorization = `Bearer ${value("appSecret")}`;
    else if (name === "paymentSecretHeader") {
      headers["X-Service-Payment-Secret"] = value("paymentSecret");
    } else headers.Authorization = `Bearer ${value(name)}`;
  }
  return headers;
}

function mayBeTried(operation) {
  const needsSecret = operation.security.some((way) => "appSecret" in way || "appSecretAsBearer" in way);
  return mode === "sandbox" || !needsSecret;
}

// Trying out

function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function resolved(whole, reference) {
  if (!reference.$ref) return reference;
  return reference.$ref.slice(2).split("/").reduce((at, part) => at[part], whole);
}

function bodyOf(whole, operation) {
  if (!operation.requestBody) return null;
  const { examples } = operation.requestBody.content["application/json"];
  const first = resolved(whole, Object.values(examples)[0]);
  return element("textarea", {
    value: JSON.stringify(first.value, null, 2),
    spellcheck: false,
  });
}

function tryForm(whole, article, operation) {
  const inputs = [];
  const form = element("form", { className: "try", autocomplete: "off" });
  form.setAttribute("aria-label", `Try ${operation.operationId}`);
  for (const reference of operation.parameters || []) {
    const parameter = resolved(whole, reference);
    if (["Service-Version", "If-None-Match"].includes(parameter.name)) continue;
    const input = element("input", { type: "text", autocomplete: "off", spellcheck: false });
    input.required = parameter.in === "path";
    if (parameter.name === "Idempotency-Key") input.value = freshKey();
    inputs.push({ parameter, input });
    form.append(field(`${parameter.name} (${parameter.in})`, input));
  }
  const body = bodyOf(whole, operation);
  if (body) form.append(field("Body", body));
  const answer = element("div", { className: "answer" });
  answer.setAttribute("role", "status");
  form.append(element("button", { type: "submit" }, "Send"), answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await send(article, operation, inputs, body, answer);
  });
  return form;
}

async function send(article, operation, inputs, body, answer) {
  let path = article.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const { parameter, input } of inputs) {
    const given = input.value.trim();
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(given));
    else if (given && parameter.in === "query") query.set(parameter.name, given);
    else if (given) headers[parameter.name] = given;
  }
  const options = { method: article.dataset.method, headers, credentials: "omit", cache: "no-store" };
  if (body && body.value.trim()) {
    headers["Content-Type"] = "application/json";
    options.body = body.value;
  }
  // Relative to the page: the service may be mounted below a prefix.
  const target = path.slice(1) + (query.toString() ? `?${query}` : "");
  answer.replaceChildren("Sending…");
  try {
    Object.assign(headers, credentialsFor(operation)); // refuses what no header can carry
    const response = await fetch(target, options);
    show(answer, response, await response.text());
  } catch (error) {
    answer.replaceChildren(`It was not answered: ${error.message}`);
  }
}

function show(answer, response, text) {
  const headers = ["x-request-id", "service-version", "idempotent-replayed", "retry-after", "etag"]
    .filter((name) => response.headers.has(name))
    .map((name) => `${name}: ${response.headers.get(name)}`);
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON, or empty: shown as received.
  }
  const body = element("pre", { tabIndex: 0 }, element("code", {}, shown));
  answer.replaceChildren(
    element("p", {}, element("strong", {}, String(response.status)), ` ${headers.join(", ")}`),
    body,
  );
}

async function startTrying() {
  const response = await fetch("openapi.json", { credentials: "omit" });
  const whole = await response.json();
  for (const methods of Object.values(whole.paths)) {
    for (const operation of Object.values(methods)) operations.set(operation.operationId, operation);
  }
  for (const article of document.querySelectorAll("article.operation")) {
    const operation = operations.get(article.id);
    if (!operation || !mayBeTried(operation)) continue;
    const details = element("details", {}, element("summary", {}, "Try it"));
    // A form is made when it is first opened: there are many, and most stay closed.
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) {
        details.append(tryForm(whole, article, operation));
      }
    });
    article.append(details);
  }
}

startSearch();
startKeys();
startTrying().catch(() => {}); // without the document, only trying out is missing
