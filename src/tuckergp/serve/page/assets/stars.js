// Rating by clicking stars: one stop of the Tab key for all of them, arrows between them, Enter or Space rates.

import { h, short } from "./dom.js";

const MOST_LEVELS = 12;

/** Stars for one item; `rate(value)` is called with the rating that was given. */
export function stars(about, title, value, rate) {
  if (about.clicks) {
    return h("button", { class: "choose", type: "button", "aria-label": `Choose ${title}`, onclick: () => rate(1) }, "Choose");
  }
  if (!about.levels.length || about.levels.length > MOST_LEVELS) return field(about, title, rate);
  const levels = about.levels;
  const top = levels.at(-1);
  const low = levels[0] > 0 ? 0 : levels[0] - 1;
  const drawn = top - low <= 10 ? Math.ceil(top - low) : 5;
  const share = (level) => (level - low) / (top - low);
  const glyphs = "★".repeat(drawn);
  const gold = h("span", { class: "gold", "aria-hidden": "true" }, glyphs);
  const paint = (level) => gold.style.setProperty("width", `${100 * (level === null ? 0 : Math.max(0, share(level)))}%`);
  const buttons = levels.map((level, k) => {
    const from = k ? share(levels[k - 1]) : 0;
    const place = { left: `${100 * from}%`, width: `${100 * (share(level) - from)}%` };
    return h("button", {
      type: "button",
      css: place,
      tabindex: -1,
      "aria-label": `Rate ${title} ${short(level)} of ${short(top)}`,
      "aria-pressed": value === level ? "true" : "false",
      onclick: () => rate(level),
      onpointerenter: () => paint(level),
      onfocus: () => paint(level),
    });
  });
  const start = Math.max(0, levels.indexOf(value));
  buttons[value === null || value === undefined ? levels.length - 1 : start].tabIndex = 0;
  const group = h("span", { class: "stars", role: "group", "aria-label": `Rating of ${title}` },
    h("span", { class: "grey", "aria-hidden": "true" }, glyphs), gold, buttons);
  group.addEventListener("pointerleave", () => paint(value ?? null));
  group.addEventListener("focusout", () => paint(value ?? null));
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const now = buttons.indexOf(document.activeElement);
    if (!step || now < 0) return;
    event.preventDefault();
    const next = buttons[Math.min(buttons.length - 1, Math.max(0, now + step))];
    for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  });
  paint(value ?? null);
  return group;
}

function field(about, title, rate) {
  const [low, high] = about.range;
  const input = h("input", { type: "number", step: "any", min: low, max: high, "aria-label": `Rating of ${title} from ${short(low)} to ${short(high)}` });
  const give = (event) => {
    event.preventDefault();
    if (input.value !== "" && input.checkValidity()) rate(Number(input.value));
  };
  return h("form", { class: "rate", onsubmit: give }, input, h("button", {}, "Rate"));
}
