// Questions to the server. An answer is JSON; a refusal is an Error whose message is the server's sentence.

import { h } from "./dom.js";

const TOKEN = "tuckergp token";

async function ask(method, path, body) {
  const headers = { Accept: "application/json" };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  if (answer.status === 401) {
    await askForToken(Boolean(token));
    return ask(method, path, body);
  }
  const text = await answer.text();
  let content = null;
  try {
    content = text ? JSON.parse(withIdsAsText(text)) : null;
  } catch {
    content = null;
  }
  if (!answer.ok) {
    const error = new Error(content?.detail ?? `The server answers with status ${answer.status}.`);
    error.status = answer.status;
    throw error;
  }
  return content;
}

/** Integer ids as text, for numbers of JavaScript are exact up to 2^53 only. In JSON text no quote inside a string is bare. */
const withIdsAsText = (text) => text.replace(/"((?:user|item)_id)":(-?\d+)(?=[,}])/g, '"$1":"$2"');

let asking = null;

function askForToken(wrong) {
  asking ??= new Promise((done, fail) => {
    // what a header cannot hold cannot be a token
    const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true, pattern: "[!-~]+", title: "Letters, digits and signs without spaces" });
    const dialog = h(
      "dialog",
      { "aria-label": "Access token" },
      h(
        "form",
        { method: "dialog" },
        h("p", {}, wrong ? "The token is not right." : "This server asks for its access token."),
        h("label", { for: "token" }, "Token"),
        field,
        h("button", { class: "primary", value: "token" }, "Go on"),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      asking = null;
      if (dialog.returnValue !== "token") return fail(new Error("The server asks for its access token. Load the page again to give it."));
      sessionStorage.setItem(TOKEN, field.value);
      return done();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

function address(path, asked) {
  const known = Object.entries(asked ?? {}).filter(([, value]) => value !== undefined && value !== null);
  return known.length ? `${path}?${new URLSearchParams(known)}` : path;
}

export const get = (path, asked) => ask("GET", address(path, asked));
export const post = (path, body) => ask("POST", path, body ?? {});

/** An id as a segment of a path; browsers would take `.` and `..` out of it. */
const place = (id) => encodeURIComponent(/^~*\.{0,2}$/.test(id) ? `~${id}` : id);

export const about = () => get("/page/about");
export const people = (search, limit = 8) => get("/users", { search, limit });
export const items = (search, limit = 8) => get("/items", { search, limit });
export const person = (id, fresh) => get("/page/person", { user_id: id, new: fresh || null });
export const item = (id) => get("/page/item", { item_id: id });
export const similar = (id, n = 8) => get(`/items/${place(id)}/similar`, { n });
export const explain = (user_id, item_id) => get("/explain", { user_id, item_id });
/** A list for a person, `{ user_id }` or `{ attributes }`, and what the person is expected to give. */
export const recommended = async (person, asked) => (await post("/recommendations", { users: [person], ...asked })).lists[0];
export const expected = (person, list) => post("/page/expected", { ...person, items: list });
export const foldIn = (body) => post("/fold-in", body);
export const forget = (id) => ask("DELETE", `/users/${place(id)}`);
export const surface = (along, fixed, draw, output) => post("/page/surface", { along, fixed, draw, output });

let drawn = null;
/** The map of items, asked for once a minute at most: the server may have another model then. */
export function itemMap() {
  if (!drawn) {
    drawn = get("/page/map");
    const forget = () => { drawn = null; };
    drawn.then(() => setTimeout(forget, 60_000), forget);
  }
  return drawn;
}
