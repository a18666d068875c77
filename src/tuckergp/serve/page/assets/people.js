// The start: find a person, or be a new one.

import * as api from "./api.js";
import { calm, called, count, h, put, say } from "./dom.js";

export async function peopleView({ about }) {
  const results = h("ul", { class: "found" });
  const note = h("p", { class: "quiet small" });
  const look = async (text) => {
    try {
      const found = await api.people(text, 12);
      put(results, found.users.map(entry));
      note.textContent = found.total ? `${count(found.total)} ${text ? "found" : "people"}${found.total > found.users.length ? `, the first ${found.users.length} shown` : ""}` : `Nobody is called “${text}”.`;
      if (text) say(note.textContent);
    } catch (error) {
      put(results, h("li", { class: "fault" }, error.message));
    }
  };
  const field = h("input", { id: "find", type: "search", placeholder: "Id or name", autocomplete: "off", oninput: calm(() => look(field.value.trim())) });
  const open = (event) => {
    event.preventDefault();
    results.querySelector("a")?.click();
  };
  await look("");
  return [
    h("div", { class: "intro" },
      h("h1", {}, "Who is it for?"),
      h("p", { class: "lead" }, `Find one of ${count(about.users)} people and see what the model would recommend, how sure it is, and why. Or start as somebody new, and rate a few things.`)),
    h("div", { class: "columns start" },
      h("section", { class: "card", "aria-label": "People" },
        h("form", { role: "search", onsubmit: open }, h("label", { for: "find" }, "Find a person"), field),
        results, note),
      h("section", { class: "card warm", "aria-labelledby": "new-title" },
        h("h2", { id: "new-title" }, "New person"),
        h("p", {}, about.clicks ? "Choose a few things, and watch the list follow." : "Rate a few things, and watch the list follow each star."),
        h("a", { class: "button primary", href: `#/person/${encodeURIComponent(newId(about))}?new=1` }, "Start as a new person"))),
  ];
}

/** An id that nobody has, of the type of the others. */
function newId(about) {
  const digits = crypto.getRandomValues(new Uint32Array(2));
  return about.whole_ids ? String(9e14 + (digits[0] % 1e6) * 1e6 + (digits[1] % 1e6)) : `visitor-${digits[0].toString(36)}${digits[1].toString(36)}`;
}

function entry(user) {
  const facts = Object.values(user.attributes).filter((value) => value !== null && value !== user.title).slice(0, 4);
  return h("li", {}, h("a", { href: `#/person/${encodeURIComponent(user.user_id)}` },
    h("span", { class: "name" }, called(user)),
    h("span", { class: "quiet small" }, facts.map((value) => [].concat(value).join(", ")).join(" · "))));
}
