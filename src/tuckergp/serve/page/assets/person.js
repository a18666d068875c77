// One person: the list with bars and whiskers, rating by stars, and what each rating moved.

import * as api from "./api.js";
import { calm, called, count, fresh as freshId, h, number, put, say, short } from "./dom.js";
import { stars } from "./stars.js";

const LONG = 12;

export async function personView({ about, id, asked }) {
  const fresh = asked.has("new");
  return new Person(about, id, fresh, await api.person(id, fresh)).start();
}

class Person {
  constructor(about, id, fresh, known) {
    Object.assign(this, { about, id, fresh, known, list: [], by: about.by[0], facts: recall(id) });
    this.own = new Map((known?.ratings ?? []).map((each) => [each.id, each]));
    this.last = Promise.resolve();
    this.moved = h("p", { class: "moved", hidden: true });
    this.place = h("ol", { class: "list" });
    this.rated = h("div", {});
    this.head = h("p", { class: "facts" });
    this.toRate = h("ul", { class: "to-rate" });
  }

  async start() {
    const { about, fresh } = this;
    await this.load();
    this.renderList(null);
    this.renderOwn();
    this.suggest("");
    const title = fresh ? "New person" : called(this.known ?? { id: this.id });
    return [
      h("p", { class: "crumb" }, h("a", { href: "#/" }, "People"), fresh ? h("button", { class: "link", onclick: () => this.startOver() }, "Start over") : null),
      h("h1", {}, title),
      this.head,
      h("div", { class: "columns person" },
        h("section", { class: "card wide", "aria-labelledby": "list-title" },
          h("div", { class: "row" }, h("h2", { id: "list-title" }, "Recommendations"), this.sorting()),
          this.legend(), this.moved, this.place),
        h("div", { class: "side" },
          fresh && about.questions.length ? this.questions() : null,
          h("section", { class: "card", "aria-labelledby": "rate-title" },
            h("h2", { id: "rate-title" }, about.clicks ? "Choose something" : "Rate something known"),
            h("label", { for: "find-item", class: "hidden" }, "Find an item"),
            h("input", { id: "find-item", type: "search", placeholder: "Find an item", autocomplete: "off", oninput: calm((event) => this.suggest(event.target.value.trim())) }),
            this.toRate),
          this.rated)),
    ];
  }

  legend() {
    if (this.about.clicks) return h("p", { class: "quiet small" }, "Bars: how likely a choice is, relative to the first of the list.");
    const order = this.about.by.length > 1 ? " Value is how likely something is chosen, times how much it would be liked." : "";
    const whisker = this.about.sampled ? " The line is where the expected rating lies with a probability of two thirds." : "";
    return h("p", { class: "quiet small" }, `Bars: the expected rating, on the scale from ${short(this.about.range[0])} to ${short(this.about.range[1])}.${whisker}${order}`);
  }

  sorting() {
    if (this.about.by.length < 2) return null;
    const words = { value: "value: chosen and liked", rating: "expected rating", choice: "probability of a choice" };
    const change = (event) => this.change(async () => {
      this.by = event.target.value;
      await this.load();
      this.renderList(null);
    });
    return h("span", { class: "inline" }, h("label", { for: "by" }, "by"), h("select", { id: "by", onchange: change }, this.about.by.map((by) => h("option", { value: by }, words[by]))));
  }

  async load() {
    const by = this.about.by.length > 1 ? this.by : undefined;
    const who = this.known ? { user_id: this.id } : { attributes: this.facts };
    const answer = await api.recommended(who, { n: LONG, by });
    this.list = answer.items.map((each) => ({ ...each, id: String(each.item_id) }));
    if (this.by === "value" && this.list.length) {
      const { mean, std } = await api.expected(who, this.list.map((each) => each.id));
      this.list.forEach((each, k) => Object.assign(each, { rating: mean[k], std: std?.[k] ?? null }));
    } else if (this.by !== "rating") {
      this.list.forEach((each) => Object.assign(each, { std: null }));
    }
  }

  /** The list; `before` has the ranks of the last one, from which arrows follow. */
  renderList(before) {
    const { about } = this;
    const tops = new Map([...this.place.children].map((row) => [row.dataset.id, row.getBoundingClientRect().top]));
    const best = this.list[0]?.score ?? 1;
    put(this.place, this.list.map((each) => this.row(each, before, best)));
    if (!this.list.length) put(this.place, h("li", { class: "quiet" }, "Nothing is left to recommend."));
    if (before && !matchMedia("(prefers-reduced-motion: reduce)").matches) glide(this.place, tops);
    const words = !this.own.size && !about.has_ratings ? [] : [`${count(this.own.size)} ${about.clicks ? "choices" : this.own.size === 1 ? "rating" : "ratings"}`];
    for (const fact of this.known?.attributes ?? []) words.push(`${fact.name} ${fact.value}`);
    put(this.head, words.map((word) => h("span", { class: "chip" }, word)));
  }

  row(each, before, best) {
    const { about } = this;
    const [low, high] = about.range ?? [-Infinity, Infinity];
    const value = each.rating ?? each.score;
    const within = Math.min(high, Math.max(low, value)); // a sum of parts may leave the scale
    const link = `#/item/${encodeURIComponent(each.id)}?person=${encodeURIComponent(this.id)}${this.fresh ? "&new=1" : ""}`;
    const text = about.clicks || this.by === "choice" ? null : `${number(within)}${each.std ? ` ± ${number(each.std)}` : ""}`;
    const share = text === null ? Math.max(0, each.score / best) : null;
    return h("li", { "data-id": each.id },
      h("span", { class: "rank", "aria-hidden": "true" }, each.rank),
      h("span", { class: "what" }, this.known ? h("a", { href: link }, called(each)) : h("a", { href: `#/item/${encodeURIComponent(each.id)}` }, called(each)), move(each, before)),
      bar(about, value, each.std, share),
      h("span", { class: "value" }, text ?? ""),
      stars(about, called(each), null, (level) => this.rate(each.id, called(each), level)));
  }

  suggest(text) {
    const show = (found) => {
      const open = found.filter((each) => !this.own.has(each.id)).slice(0, 6);
      put(this.toRate, open.length ? open.map((each) => h("li", {},
        h("span", {}, called(each)), stars(this.about, called(each), null, (level) => this.rate(each.id, called(each), level)))) : h("li", { class: "quiet" }, "Nothing else is called so."));
    };
    this.looked = text;
    if (!text) return show(this.about.popular);
    return api.items(text, 20).then((found) => {
      if (this.looked === text) show(found.items.map((each) => ({ id: String(each.item_id), title: each.title })));
    }).catch((error) => put(this.toRate, h("li", { class: "fault" }, error.message)));
  }

  /** Rate, and show what moved. */
  rate(item, title, level) {
    return this.change(async () => {
      await this.foldIn([{ id: item, rating: level }]);
      this.own.set(item, { id: item, title, rating: level });
      this.known = await api.person(this.id);
      const before = await this.reload();
      this.renderOwn();
      this.suggest(this.looked);
      this.tell(title, level, item, before);
    });
  }

  /** Do something that changes the list; what comes while another change is under way waits for it. */
  change(action) {
    this.last = this.last.then(async () => {
      this.place.setAttribute("aria-busy", "true");
      try {
        await action();
      } catch (error) {
        this.moved.hidden = false;
        put(this.moved, h("span", { class: "fault" }, error.message));
        say(error.message);
      } finally {
        this.place.removeAttribute("aria-busy");
      }
    });
    return this.last;
  }

  /** Ask for the list again and show how it differs from the last one, which is returned by id. */
  async reload() {
    const before = new Map(this.list.map((each) => [each.id, each]));
    await this.load();
    this.renderList(before);
    return before;
  }

  /** Send ratings, and what a new person says of themselves. A rating takes the place of an earlier one. */
  foldIn(given) {
    const ratings = given.map((each) => ({ user_id: this.id, item_id: each.id, ...(this.about.clicks ? {} : { rating: each.rating }) }));
    const users = this.fresh && Object.keys(this.facts).length ? [{ user_id: this.id, ...this.facts }] : [];
    return api.foldIn({ ratings, users });
  }

  tell(title, level, item, before) {
    const now = new Set(this.list.map((each) => each.id));
    const gone = [...before.values()].filter((each) => !now.has(each.id) && each.id !== item);
    const came = this.list.filter((each) => !before.has(each.id));
    const up = this.list.filter((each) => before.has(each.id) && before.get(each.id).rank > each.rank);
    const down = this.list.filter((each) => before.has(each.id) && before.get(each.id).rank < each.rank);
    const parts = [];
    if (came.length) parts.push(`${came.length} new`);
    if (up.length) parts.push(`${up.length} up`);
    if (down.length) parts.push(`${down.length} down`);
    if (gone.length) parts.push(`gone: ${gone.slice(0, 3).map(called).join(", ")}${gone.length > 3 ? ` and ${gone.length - 3} more` : ""}`);
    const given = this.about.clicks ? `Chosen: ${title}.` : `${title}: ${short(level)}.`;
    const text = `${given} ${parts.length ? `The list: ${parts.join(", ")}.` : "The list stays as it was."}`;
    this.moved.hidden = false;
    put(this.moved, text);
    say(text);
  }

  renderOwn() {
    const shown = [...this.own.values()].sort((a, b) => b.rating - a.rating);
    if (!shown.length) return put(this.rated);
    const line = (each) => h("li", {},
      h("a", { href: `#/item/${encodeURIComponent(each.id)}?person=${encodeURIComponent(this.id)}${this.fresh ? "&new=1" : ""}` }, called(each)),
      this.about.clicks ? null : stars(this.about, called(each), each.rating, (level) => this.rate(each.id, called(each), level)));
    const more = shown.length > 200 ? h("p", { class: "quiet small" }, "The first 200.") : null;
    return put(this.rated, h("details", { class: "card", open: this.fresh || shown.length <= 12 },
      h("summary", {}, h("h2", {}, this.about.clicks ? "Chosen so far" : "Rated so far")), h("ul", { class: "to-rate" }, shown.slice(0, 200).map(line)), more));
  }

  questions() {
    const change = (name, value) => this.change(async () => {
      if (value === "") delete this.facts[name];
      else this.facts[name] = value;
      sessionStorage.setItem(`facts of ${this.id}`, JSON.stringify(this.facts));
      if (this.known) {
        await this.foldIn([]); // the attributes alone
        this.known = await api.person(this.id);
      }
      await this.reload();
    });
    const fields = this.about.questions.map((each) => {
      const id = freshId("question");
      const input = each.use === "number"
        ? h("input", { id, type: "number", step: "any", placeholder: each.range ? `${short(each.range[0])} to ${short(each.range[1])}` : "", value: this.facts[each.name] ?? "", onchange: (event) => change(each.name, event.target.value === "" ? "" : Number(event.target.value)) })
        : h("select", { id, onchange: (event) => change(each.name, event.target.value) }, h("option", { value: "" }, "not said"), each.values.map((value) => h("option", { value, selected: this.facts[each.name] === value }, value)));
      return h("div", { class: "field" }, h("label", { for: id }, each.name), input);
    });
    return h("section", { class: "card", "aria-labelledby": "about-title" }, h("h2", { id: "about-title" }, "About this person"), h("div", { class: "fields" }, fields));
  }

  async startOver() {
    if (this.known) await api.forget(this.id).catch(() => null);
    sessionStorage.removeItem(`facts of ${this.id}`);
    location.hash = "#/";
  }
}

function recall(id) {
  try {
    return JSON.parse(sessionStorage.getItem(`facts of ${id}`)) ?? {};
  } catch {
    return {};
  }
}

/** A bar for the expected rating, and a whisker of one standard deviation to either side. */
function bar(about, value, std, share) {
  const [low, high] = about.range ?? [0, 1];
  const at = (number) => Math.min(100, Math.max(0, (100 * (number - low)) / (high - low || 1)));
  const width = share === null ? at(value) : 100 * share;
  const whisker = std && share === null ? h("span", { class: "whisker", css: { left: `${at(value - std)}%`, width: `${at(value + std) - at(value - std)}%` } }) : null;
  return h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: "full", css: { width: `${width}%` } }), whisker);
}

function move(each, before) {
  if (!before) return null;
  const was = before.get(each.id);
  if (!was) return h("span", { class: "move new" }, "new");
  const by = was.rank - each.rank;
  if (!by) return null;
  return h("span", { class: by > 0 ? "move up" : "move down" }, h("span", { class: "hidden" }, by > 0 ? "up by " : "down by "), `${by > 0 ? "▲" : "▼"} ${Math.abs(by)}`);
}

/** Rows glide from where they were. */
function glide(place, tops) {
  for (const row of place.children) {
    const from = tops.get(row.dataset.id);
    const by = from === undefined ? 0 : from - row.getBoundingClientRect().top;
    if (from === undefined) row.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 350 });
    else if (by) row.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 350, easing: "ease-out" });
  }
}
