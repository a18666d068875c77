// A regression model: a series along one column or a map over two, the other columns set by sliders.

import * as api from "./api.js";
import { axisLabels, calm, fresh, h, labelled, put, say, short } from "./dom.js";
import { series } from "./charts.js";
import { HeatMap } from "./heat.js";

export async function surfaceView({ about }) {
  const view = new Surface(about);
  await view.refresh();
  return view.elements();
}

class Surface {
  constructor(about) {
    this.about = about;
    [this.x, this.y] = [about.first[0], about.first[1] ?? ""];
    this.fixed = Object.fromEntries(about.columns.map((column) => [column.name, Math.floor(column.values.length / 2)]));
    this.draw = -1;
    this.output = about.outputs[0] ?? null;
    this.shown = "mean";
    this.place = h("div", { class: "surface" });
    this.controls = h("div", { class: "controls" });
    this.asked = 0;
    this.later = calm(() => this.refresh(), 60);
    new ResizeObserver(() => this.fit()).observe(this.place);
  }

  elements() {
    return [
      h("h1", {}, "Predictions"),
      h("p", { class: "lead" }, "The mean that the model predicts, how sure it is, and the components that it is the sum of. Choose one column for a series or two for a map, and set the others."),
      h("div", { class: "columns surface-columns" }, h("section", { class: "card", "aria-label": "Settings" }, this.controls), h("section", { class: "card wide", "aria-label": "Picture" }, this.place)),
    ];
  }

  async refresh() {
    this.renderControls();
    const along = this.y ? [this.x, this.y] : [this.x];
    const fixed = Object.fromEntries(Object.entries(this.fixed).filter(([name]) => !along.includes(name)));
    const number = (this.asked += 1);
    try {
      const found = await api.surface(along, fixed, this.draw, this.output);
      if (number === this.asked) this.render(found);
    } catch (error) {
      put(this.place, h("p", { class: "fault" }, error.message));
      say(error.message);
    }
  }

  renderControls() {
    const key = `${this.x}\n${this.y}`;
    if (this.rendered === key) return;
    this.rendered = key;
    const names = this.about.columns.map((column) => column.name);
    const choose = (label, value, options, change) => h("div", { class: "field" }, h("label", { for: `along-${label}` }, label), h("select", { id: `along-${label}`, onchange: (event) => change(event.target.value) }, options.map(([name, text]) => h("option", { value: name, selected: name === value }, text))));
    const own = (list) => list.map((name) => [name, name]);
    const others = this.about.columns.filter((column) => column.name !== this.x && column.name !== this.y);
    put(this.controls,
      this.output === null ? null : choose("Output", this.output, own(this.about.outputs), (name) => { this.output = name; this.refresh(); }),
      choose("Along", this.x, own(names.filter((name) => name !== this.y)), (name) => { this.x = name; this.refresh(); }),
      choose("and", this.y, [["", "nothing else: a series"], ...own(names.filter((name) => name !== this.x))], (name) => { this.y = name; this.refresh(); }),
      others.length ? h("h2", {}, "The other columns") : null,
      others.map((column) => this.slider(column)));
  }

  slider(column) {
    const output = h("output", {}, labelled(column.values[this.fixed[column.name]]));
    const move = (event) => {
      this.fixed[column.name] = Number(event.target.value);
      output.textContent = labelled(column.values[this.fixed[column.name]]);
      event.target.setAttribute("aria-valuetext", output.textContent);
      this.later();
    };
    const id = fresh("slider"); // an output in a label would be what it labels
    return h("label", { class: "slider", for: id }, h("span", {}, column.name, " ", output),
      h("input", { id, type: "range", min: 0, max: column.values.length - 1, value: this.fixed[column.name], step: 1, "aria-valuetext": output.textContent, disabled: column.values.length < 2, oninput: move }));
  }

  /** Draw a series again where its place has another width, so that letters keep their size; at first it has none. */
  fit() {
    if (this.found?.axes.length === 1 && Math.abs(this.place.clientWidth - this.width) > 40) this.render(this.found);
  }

  render(found) {
    this.found = found;
    this.width = this.place.clientWidth;
    const caption = found.components.length ? [h("h2", {}, "Components"), h("p", { class: "quiet small" }, `The largest summands of one of ${found.draws} draws${this.about.latent ? `, in units of the ${this.about.latent}` : ""}. Those of another draw need not correspond.`), this.drawPicker(found.draws)] : [];
    if (found.axes.length === 1) {
      const [axis] = found.axes;
      const [picture, readout, components] = series({ axis: axis.values, labels: axisLabels(axis.values), mean: found.mean, bands: found.bands, components: found.components }, axis.name, Math.min(720, Math.max(280, this.width)));
      put(this.place, picture, readout, h("p", { class: "quiet small" }, found.bands.length ? "Line: mean. Dark band: where the mean lies with a probability of 90 %. Light band: where a new observation does." : "A point estimate has no bands."), caption, components);
    } else this.renderMap(found, caption);
    this.place.dataset.drawn = found.axes.map((axis) => axis.name).join(" ");
  }

  renderMap(found, caption) {
    const [x, y] = found.axes;
    const choices = [["mean", "Mean"], ...(found.std ? [["std", "Uncertainty (standard deviation of the mean)"]] : [])];
    if (!choices.some(([name]) => name === this.shown)) this.shown = "mean";
    const main = h("div", {});
    const paint = () => put(main, new HeatMap({ x, y, values: found[this.shown], label: `${this.shown === "mean" ? "Mean" : "Standard deviation"} over ${x.name} and ${y.name}`, height: 420 }).element);
    const pick = h("div", { class: "tools", role: "radiogroup", "aria-label": "What to show" }, choices.map(([name, text]) => h("label", { class: "inline" },
      h("input", { type: "radio", name: "shown", value: name, checked: name === this.shown, onchange: () => { this.shown = name; paint(); } }), text)));
    paint();
    put(this.place, pick, main, caption, h("div", { class: "multiples" }, found.components.map((part) => h("figure", {},
      new HeatMap({ x, y, values: part.values, label: `Component ${part.label}`, height: 170, diverging: true, small: true }).element,
      h("figcaption", {}, part.label, " ", h("span", { class: "quiet" }, `sd ${short(part.size)}`))))));
  }

  drawPicker(draws) {
    if (draws < 2) return null;
    const value = this.draw < 0 ? draws + this.draw : this.draw;
    const output = h("output", {}, `${value + 1} of ${draws}`);
    return h("label", { class: "slider", for: "draw" }, h("span", {}, "Draw ", output),
      h("input", { id: "draw", type: "range", min: 0, max: draws - 1, value, oninput: (event) => { this.draw = Number(event.target.value); output.textContent = `${this.draw + 1} of ${draws}`; }, onchange: () => this.refresh() }));
  }
}
