// Elements from plain values. Text becomes text nodes, never markup: ids and titles may hold anything.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (name === "css") for (const [rule, to] of Object.entries(value)) element.style.setProperty(rule, to);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element; properties beginning with `on` are listeners, `css` is an object of rules. */
export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);

/** An SVG element. */
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

/** Put other children in the place of those of an element. */
export const put = (element, ...children) => {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};

/** Say something to people who listen to the page. */
export const say = (text) => {
  document.getElementById("status").textContent = text;
};

export const number = (value, digits = 2) =>
  value === null || value === undefined ? "–" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

export const count = (value) => value.toLocaleString("en");

export const signed = (value, digits = 2) => (value < 0 ? "−" : "+") + number(Math.abs(value), digits);

export const short = (value) => {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value).replace("T00:00:00", "");
  const size = Math.abs(value);
  return Number(value.toPrecision(size >= 1000 ? 5 : 3)).toLocaleString("en", { maximumFractionDigits: 6, useGrouping: size >= 10000 });
};

/** A value of a column: of a time the day, and the hour where it is asked for and not midnight; other text as it is. */
export const labelled = (value, hour = true) =>
  typeof value !== "string" ? short(value) : value.replace(/^(-?\d{4,}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*$/, (_, day, time) => (hour && time !== "00:00" ? `${day} ${time}` : day));

/** Values along an axis, with hours where it spans some days at most. */
export const axisLabels = (values) => {
  const hours = Date.parse(values.at(-1)) - Date.parse(values[0]) < 10 * 86_400_000;
  return values.map((value) => labelled(value, hours));
};

/** The title of an item or person, its id where it has none; words where both are blank, so that there is something to click. */
export const called = (thing) => String([thing.title, thing.id, thing.item_id, thing.user_id].find((text) => String(text ?? "").trim()) ?? "(no name)");

let numbered = 0;
export const fresh = (prefix) => `${prefix}-${(numbered += 1)}`;

/** Wait until nothing was typed for a moment. */
export function calm(action, wait = 160) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
}

/** A section that is filled when its data have come, and says what went wrong if they do not. */
export function section(title, load, properties = {}) {
  const id = fresh("section");
  const body = h("div", { class: "body" }, h("p", { class: "quiet" }, "Loading …"));
  const element = h("section", { "aria-labelledby": id, ...properties }, h("h2", { id }, title), body);
  Promise.resolve()
    .then(load)
    .then((content) => put(body, content))
    .catch((error) => put(body, h("p", { class: "fault" }, error.message)));
  return element;
}
