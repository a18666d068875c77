// Pictures of numbers: tables with bars, and small SVG plots. Each has words for those who cannot see it.

import { h, number, s, short, signed } from "./dom.js";

/** A table whose rows have a label, a bar from `start` to `end` of a scale, and a text. */
export function barTable(caption, rows, [low, high], { zero = null, narrow = false, head = ["", "", ""] } = {}) {
  const at = (value) => Math.min(100, Math.max(0, (100 * (value - low)) / (high - low || 1)));
  const line = ({ label, start, end, text, kind = "", note = "", spread = 0 }) => {
    const [left, right] = [Math.min(start, end), Math.max(start, end)];
    const whisker = spread ? h("span", { class: "whisker", css: { left: `${at(end - spread)}%`, width: `${at(end + spread) - at(end - spread)}%` } }) : null;
    const mark = zero === null ? null : h("span", { class: "zero", css: { left: `${at(zero)}%` } });
    return h("tr", { class: kind }, h("th", { scope: "row" }, label, note ? h("span", { class: "quiet" }, ` ${note}`) : null),
      h("td", { class: "plot", "aria-hidden": "true" }, h("span", { class: "bar" }, mark, h("span", { class: "full", css: { left: `${at(left)}%`, width: `${right > left ? Math.max(0.4, at(right) - at(left)) : 0}%` } }), whisker)),
      h("td", { class: "value" }, text));
  };
  return h("table", { class: narrow ? "bars narrow" : "bars" }, h("caption", { class: "hidden" }, caption),
    h("thead", { class: "hidden" }, h("tr", {}, h("th", { scope: "col" }, head[0] || "part"), h("td", { "aria-hidden": "true" }), h("th", { scope: "col" }, head[2] || "value"))),
    h("tbody", {}, rows.map(line)));
}

const PHRASES = { "user own": "this person's own taste", "item own": "the item's own appeal", "user co-rating": "people who rated the same items", "item co-rating": "items rated by the same people", "time period": "everyone at that time", "time own": "this person at that time" };
const SMALL = 0.005;
const MOST = 8;

const words = (row) => {
  const phrase = PHRASES[`${row.side} ${row.what}`];
  if (phrase) return [phrase, row.value ? `(${row.value})` : ""];
  return [row.side === "user" ? `person's ${row.what}` : row.side === "item" ? `item's ${row.what}` : row.what, row.value ?? ""];
};

/** From the average to the prediction, each part beginning where the one before ends. */
export function waterfall(explanation) {
  const { base, parts } = explanation;
  const shown = parts.filter((row) => Math.abs(row.contribution) >= SMALL).sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  const rest = parts.reduce((sum, row) => sum + row.contribution, 0) - shown.slice(0, MOST).reduce((sum, row) => sum + row.contribution, 0);
  const rows = [];
  let reached = base;
  let [low, high] = [reached, reached];
  const step = (label, note, by) => {
    rows.push({ label, note, start: reached, end: reached + by, text: signed(by), kind: by < 0 ? "minus" : "plus" });
    reached += by;
    [low, high] = [Math.min(low, reached), Math.max(high, reached)];
  };
  for (const row of shown.slice(0, MOST)) step(...words(row), row.contribution);
  if (Math.abs(rest) >= SMALL) step("all other parts", "", rest);
  const room = 0.08 * (high - low || 1);
  const from = low - room;
  rows.unshift({ label: "the average person and item", start: from, end: base, text: number(base), kind: "whole" });
  rows.push({ label: explanation.latent ? `total (${explanation.latent})` : "expected rating", start: from, end: explanation.total, text: number(explanation.total), kind: "whole" });
  return barTable("From the average to the prediction, part by part", rows, [from, high + room], { head: ["part", "", "adds"] });
}

/** How often each rating was given. */
export function distribution(bins) {
  const most = Math.max(1, ...bins.map((bin) => bin.count));
  const rows = bins.map((bin) => ({ label: bin.label, start: 0, end: bin.count, text: bin.count.toLocaleString("en") }));
  return barTable("How often each rating was given", rows, [0, most], { narrow: true, head: ["rating", "", "times"] });
}

/** Evenly spaced round numbers between two ends. */
export function ticks(low, high, wanted = 5) {
  const raw = (high - low || 1) / wanted;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((size) => size >= raw);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + 1e-9 * step; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

const line = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/** An SVG with axes; `draw(x, y)` adds to it, with x and y from values to places. */
export function plot({ label, width = 560, height = 300, xs, ys, xName = "", yName = "", xTicks, left = 46 }, draw) {
  const [right, top, bottom] = [10, 10, xName ? 40 : xTicks?.length === 0 ? 8 : 26];
  const x = (value) => left + ((value - xs[0]) / (xs[1] - xs[0] || 1)) * (width - left - right);
  const y = (value) => height - bottom - ((value - ys[0]) / (ys[1] - ys[0] || 1)) * (height - top - bottom);
  const grid = ticks(ys[0], ys[1], height > 160 ? 5 : 3).map((value) => [
    s("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: "grid" }),
    s("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)),
  ]);
  const marks = (xTicks ?? ticks(xs[0], xs[1], 5).map((value) => [value, short(value)])).map(([value, text]) =>
    s("text", { x: Math.min(width - right - 8, Math.max(left, x(value))), y: height - bottom + 16, "text-anchor": "middle" }, text));
  return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "plot" }, grid, marks,
    xName ? s("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle", class: "name" }, xName) : null,
    yName ? s("text", { x: 12, y: height / 2, transform: `rotate(-90 12 ${height / 2})`, "text-anchor": "middle", class: "name" }, yName) : null,
    draw(x, y));
}

/** Which part of the ratings lies in intervals of each probability; on the diagonal if the model is right. */
export function calibration(coverage, n) {
  const worst = coverage.reduce((far, each) => (Math.abs(each.inside - each.share) > Math.abs(far.inside - far.share) ? each : far));
  const label = `Calibration: intervals of ${number(100 * worst.share, 0)} % hold ${number(100 * worst.inside, 0)} % of the ratings, which is the largest difference.`;
  const percent = [0, 0.25, 0.5, 0.75, 1].map((value) => [value, `${100 * value} %`]);
  return plot({ label, width: 340, height: 320, xs: [0, 1], ys: [0, 1], xName: "probability of the interval", yName: "share of ratings inside", xTicks: percent }, (x, y) => [
    s("path", { d: line([[x(0), y(0)], [x(1), y(1)]]), class: "diagonal" }),
    s("path", { d: line([[x(0), y(0)], ...coverage.map((each) => [x(each.share), y(each.inside)]), [x(1), y(1)]]), class: "mean" }),
    coverage.map((each) => {
      const by = 1.96 * Math.sqrt((each.share * (1 - each.share)) / n);
      return [s("line", { x1: x(each.share), x2: x(each.share), y1: y(Math.max(0, each.inside - by)), y2: y(Math.min(1, each.inside + by)), class: "error" }), s("circle", { cx: x(each.share), cy: y(each.inside), r: 3.5, class: "dot" })];
    }),
  ]);
}

/** The draws of one quantity, chain by chain. */
export function trace({ label, rhat, ess, chains }) {
  const values = chains.flat();
  const room = 0.05 * (Math.max(...values) - Math.min(...values) || 1);
  const words_ = `${label}: R-hat ${number(rhat)}, worth ${number(ess, 0)} independent draws`;
  return h("figure", { class: "trace" },
    plot({ label: words_, width: 420, height: 110, xs: [0, chains[0].length - 1], ys: [Math.min(...values) - room, Math.max(...values) + room], xTicks: [] }, (x, y) =>
      chains.map((chain, k) => s("path", { d: line(chain.map((value, t) => [x(t), y(value)])), class: `chain c${k % 4}` }))),
    h("figcaption", {}, label, " ", h("span", { class: rhat > 1.05 ? "badge bad" : "badge" }, `R-hat ${number(rhat)}`), " ", h("span", { class: "quiet" }, `${number(ess, 0)} independent draws`)));
}

/** A curve of one figure over the steps of learning. */
export function curve({ label, values }) {
  const known = values.filter((value) => value !== null);
  return h("figure", { class: "trace" },
    plot({ label: `${label} over ${values.length} steps`, width: 420, height: 110, xs: [0, Math.max(1, values.length - 1)], ys: [Math.min(...known), Math.max(...known)], xTicks: [] }, (x, y) =>
      s("path", { d: line(values.map((value, t) => [x(t), y(value ?? known[0])])), class: "mean" })),
    h("figcaption", {}, label));
}

/** Mean, bands and, below, the components of a series. */
export function series({ axis, labels, mean, bands, components }, name, width) {
  const places = axis.map((_, k) => k);
  const all = [mean, ...bands.flatMap((band) => [band.low, band.high])].flat();
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const room = 0.04 * (high - low || 1);
  const few = (wanted) => {
    const each = Math.max(1, Math.ceil(axis.length / wanted));
    return places.filter((k) => k % each === 0).map((k) => [k, labels[k]]);
  };
  const area = (band, x, y) => line([...places.map((k) => [x(k), y(band.high[k])]), ...places.toReversed().map((k) => [x(k), y(band.low[k])])]) + "Z";
  const readout = h("p", { class: "readout", "aria-live": "off" }, "Point at the plot to read values.");
  const cursor = s("line", { class: "cursor", y1: 10, y2: 260, visibility: "hidden" });
  let toPlace = null;
  const picture = plot({ label: `Prediction along ${name}: from ${short(mean[0])} to ${short(mean.at(-1))}, between ${short(low)} and ${short(high)} with its bands`, width, height: 300, xs: [0, Math.max(1, axis.length - 1)], ys: [low - room, high + room], xTicks: few(Math.max(2, Math.floor(width / 120))), xName: name }, (x, y) => {
    toPlace = x;
    return [...bands.toReversed().map((band) => s("path", { d: area(band, x, y), class: band.noise ? "band outer" : "band" })), s("path", { d: line(places.map((k) => [x(k), y(mean[k])])), class: "mean" }), axis.length <= 12 ? places.map((k) => s("circle", { cx: x(k), cy: y(mean[k]), r: 3.5, class: "dot" })) : null, cursor];
  });
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    const k = Math.min(axis.length - 1, Math.max(0, Math.round(((at - toPlace(0)) / (toPlace(1) - toPlace(0) || 1)))));
    cursor.setAttribute("x1", toPlace(k));
    cursor.setAttribute("x2", toPlace(k));
    cursor.setAttribute("visibility", "visible");
    const band = bands[0];
    readout.textContent = `${labels[k]}: ${short(mean[k])}${band ? `, between ${short(band.low[k])} and ${short(band.high[k])} with probability 90 %` : ""}`;
  });
  const small = components.length ? smallMultiples(components, places, few(3)) : null;
  return [picture, readout, small];
}

function smallMultiples(components, places, xTicks) {
  const values = components.flatMap((part) => part.values);
  const ys = [Math.min(0, ...values), Math.max(0, ...values)];
  return h("div", { class: "multiples" }, components.map((part) => h("figure", {},
    plot({ label: `Component ${part.label}, standard deviation ${short(part.size)}`, width: 330, height: 150, xs: [0, Math.max(1, places.length - 1)], ys, xTicks }, (x, y) =>
      s("path", { d: line(places.map((k) => [x(k), y(part.values[k])])), class: "mean" })),
    h("figcaption", {}, part.label, " ", h("span", { class: "quiet" }, `sd ${short(part.size)}`)))));
}
