// The model: how accurate it is, whether its intervals hold, what counts, whether its chains agree, what it learned from.

import * as api from "./api.js";
import { count, h, number, put, section, short } from "./dom.js";
import { barTable, calibration, curve, distribution, trace } from "./charts.js";

export async function modelView({ about }) {
  const recommends = about.kind === "recommender";
  return [
    h("h1", {}, "The model"),
    h("p", { class: "facts" }, [about.file, `${about.likelihood} likelihood`, `${count(about.draws)} ${about.draws === 1 ? "point" : "draws"}`].map((text) => h("span", { class: "chip" }, text))),
    h("div", { class: "columns item" },
      section("Accuracy", () => accuracy(about), { class: "card" }),
      recommends ? section("What counts", weights, { class: "card" }) : null,
      section("Has it converged?", convergence, { class: "card" }),
      recommends ? section("What it learned from", () => data(about), { class: "card" }) : section("Columns", () => columns(about), { class: "card" })),
  ];
}

async function accuracy(about) {
  const place = h("div", {});
  show(place, about, await api.get("/page/model/accuracy"));
  return place;
}

const SOURCES = {
  "held out": "At held-out data, which the model has never seen.",
  copy: "Of a copy of the model that was learned, with fewer draws, from nine tenths of the ratings in the file, at the other tenth. The model itself knows all of them, and is about as accurate on new ones.",
};

const leftOut = (figures) => figures.left_out ? ` ${count(figures.left_out)} rows of the table are left out, for the model has learned from them.` : "";

function show(place, about, figures) {
  if (!figures.source) {
    const learn = async (event) => {
      event.target.disabled = true;
      put(place, h("p", { class: "quiet", role: "status" }, "A copy is being learned from nine tenths of the ratings. That takes as long as a short fit …"));
      try {
        show(place, about, await api.post("/page/model/accuracy"));
      } catch (error) {
        put(place, h("p", { class: "fault" }, error.message));
      }
    };
    put(place, h("p", {}, "Not known. The file holds nothing that the model has not learned from, and errors at known data would flatter it. Start with ", h("code", {}, "--test FILE"), " to judge it by held-out data."),
      figures.can_copy ? h("p", {}, h("button", { class: "button", type: "button", onclick: learn }, "Measure with a copy")) : null);
    return;
  }
  if (figures.hit_rate !== undefined) {
    put(place, big([[`${number(100 * figures.hit_rate, 0)} %`, "of people find something they chose among ten"], [`${number(100 * figures.usual_hit_rate, 0)} %`, "with the ten most chosen items instead"]]),
      h("p", { class: "quiet small" }, `${SOURCES[figures.source]} ${count(figures.people)} people.${leftOut(figures)}`));
    return;
  }
  put(place, big([[number(figures.rmse, 3), "root mean squared error"], [number(figures.mae, 3), "mean absolute error"], [number(figures.usual_rmse, 3), "error of always saying the average"]]),
    figures.coverage.length ? [h("h3", {}, "Calibration"), h("p", { class: "small" }, "An interval of probability 80 % should hold 80 % of new values. Points on the diagonal: it does. Below it, the model is too sure."), calibration(figures.coverage, figures.n)] : h("p", { class: "quiet small" }, "A point estimate has no intervals to check."),
    h("p", { class: "quiet small" }, `${SOURCES[figures.source]} ${figures.of > figures.n ? `${count(figures.n)} of ${count(figures.of)} values, chosen at random.` : `${count(figures.n)} values.`}${leftOut(figures)}`));
}

const big = (pairs) => h("dl", { class: "big" }, pairs.map(([value, label]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))));

async function weights() {
  const { weights: found } = await api.get("/page/model/weights");
  if (!found.length) return h("p", { class: "quiet" }, "Not known: the model was saved without ratings.");
  const top = Math.max(0.01, ...found.map((each) => each.share + each.std));
  const low = Math.min(0, ...found.map((each) => each.share - each.std));
  const rows = found.map((each) => ({ label: each.label, start: 0, end: each.share, spread: each.std, text: `${number(100 * each.share, 1)} %`, kind: each.share < 0 ? "minus" : "" }));
  return [h("p", { class: "small" }, "Of the differences between predictions, the share that each part explains. The line is one standard deviation."),
    barTable("Share of the variance of predictions by part", rows, [low, top], { zero: low < 0 ? 0 : null, head: ["part", "", "share"] })];
}

async function convergence() {
  const found = await api.get("/page/model/convergence");
  if (found.curve.length) return [h("p", { class: "small" }, "Learned step by step, without chains:"), found.curve.slice(0, 4).map(curve)];
  if (!found.traces.length) return h("p", { class: "quiet" }, "A point estimate has no chains.");
  const fine = found.worst_rhat !== null && found.worst_rhat < 1.05;
  return [
    h("p", {}, h("span", { class: fine ? "badge" : "badge bad" }, `R-hat up to ${number(found.worst_rhat)}`), ` over ${count(found.watched)} predictions, ${found.chains} ${found.chains === 1 ? "chain" : "chains"} of ${count(found.draws)} draws. `,
      found.warning ?? "R-hat near 1 means that the parts of the chains agree."),
    h("p", { class: "quiet small" }, "Traces should look like noise around a level. Predictions with the largest R-hat:"),
    found.traces.map(trace),
  ];
}

async function data(about) {
  const found = await api.get("/page/model/data");
  const rows = [[count(found.ratings), about.clicks ? "choices" : "ratings"], [count(found.users), "people"], [count(found.items), "items"]];
  const uses = found.columns.map((each) => h("tr", {}, h("th", { scope: "row" }, each.column), h("td", {}, each.table), h("td", {}, each.use), h("td", { class: "quiet" }, each.note)));
  return [
    big(rows),
    !found.ratings ? h("p", { class: "quiet" }, "The model was saved without its ratings.") : h("p", { class: "small" }, `${number(100 * found.filled, found.filled < 0.01 ? 3 : 1)} % of all pairs are known.`, found.added ? ` ${count(found.added)} ${about.clicks ? "choices" : "ratings"} were added since the fit.` : ""),
    found.ratings && found.distribution.length ? [h("h3", {}, found.distribution_of < found.users ? `How ratings of ${count(found.distribution_of)} people are distributed` : "How ratings are distributed"), distribution(found.distribution)] : null,
    uses.length ? [h("h3", {}, "How columns are used"), h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "How columns are used" }, h("table", { class: "facts-table" }, h("thead", {}, h("tr", {}, ["column", "of", "use", "note"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, uses)))] : null,
  ];
}

function columns(about) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Columns" }, h("table", { class: "facts-table" }, h("thead", {}, h("tr", {}, ["column", "holds", "from", "to"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, about.columns.map((each) => h("tr", {}, h("th", { scope: "row" }, each.name), h("td", {}, each.kind), h("td", {}, short(each.values[0])), h("td", {}, short(each.values.at(-1))))))));
}
