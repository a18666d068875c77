// Values over two columns as colours on a canvas, with a scale; pointing at a cell reads its value.

import { axisLabels, h, short } from "./dom.js";

const SEQUENTIAL = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const DIVERGING = [[49, 92, 160], [146, 178, 213], [240, 240, 236], [225, 168, 120], [176, 86, 30]];

const mixed = (stops, share) => {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const k = Math.min(stops.length - 2, Math.floor(at));
  return stops[k].map((from, j) => Math.round(from + (stops[k + 1][j] - from) * (at - k)));
};

export class HeatMap {
  constructor({ x, y, values, label, height, diverging = false, small = false }) {
    const finite = values.filter((value) => value !== null);
    let [low, high] = [Math.min(...finite), Math.max(...finite)];
    if (diverging) [low, high] = [-Math.max(-low, high), Math.max(-low, high)];
    Object.assign(this, { x, y, values, low, high, stops: diverging ? DIVERGING : SEQUENTIAL });
    this.names = [x, y].map((axis) => axisLabels(axis.values));
    const along = [x, y].map((axis, k) => `${axis.name} from ${this.names[k][0]} to ${this.names[k].at(-1)}`);
    const words = `${label}: values from ${short(Math.min(...finite))} to ${short(Math.max(...finite))}, ${along.join(", ")}.`;
    this.canvas = h("canvas", { role: "img", "aria-label": words, class: "heat", width: x.values.length, height: y.values.length, css: { height: `${height}px` } });
    this.paint();
    if (small) {
      this.element = this.canvas;
      return;
    }
    this.readout = h("p", { class: "readout" }, "Point at the map to read values.");
    this.canvas.addEventListener("pointermove", (event) => this.read(event));
    const axis = (kind, ends, name) => h("div", { class: kind, "aria-hidden": "true" }, h("span", {}, ends[0]), h("span", { class: "name" }, name), h("span", {}, ends[1]));
    this.element = h("figure", { class: "heat-map" }, axis("y-axis", [this.names[1].at(-1), this.names[1][0]], y.name), this.canvas,
      axis("x-axis", [this.names[0][0], this.names[0].at(-1)], x.name), this.scale(), this.readout);
  }

  /** One pixel per cell; the browser makes it larger. */
  paint() {
    const [columns, rows] = [this.x.values.length, this.y.values.length];
    const pen = this.canvas.getContext("2d");
    const image = pen.createImageData(columns, rows);
    for (let i = 0; i < columns; i += 1) {
      for (let j = 0; j < rows; j += 1) {
        const value = this.values[i * rows + j];
        const [r, g, b] = value === null ? [128, 128, 128] : mixed(this.stops, (value - this.low) / (this.high - this.low || 1));
        image.data.set([r, g, b, 255], 4 * ((rows - 1 - j) * columns + i));
      }
    }
    pen.putImageData(image, 0, 0);
  }

  scale() {
    const strip = h("canvas", { width: 100, height: 1, "aria-hidden": "true" });
    const pen = strip.getContext("2d");
    for (let k = 0; k < 100; k += 1) {
      pen.fillStyle = `rgb(${mixed(this.stops, k / 99).join(" ")})`;
      pen.fillRect(k, 0, 1, 1);
    }
    return h("div", { class: "scale" }, h("span", {}, short(this.low)), strip, h("span", {}, short(this.high)));
  }

  read(event) {
    const [columns, rows] = [this.x.values.length, this.y.values.length];
    const box = this.canvas.getBoundingClientRect();
    const i = Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * columns)));
    const j = Math.min(rows - 1, Math.max(0, rows - 1 - Math.floor(((event.clientY - box.top) / box.height) * rows)));
    this.readout.textContent = `${this.x.name} ${this.names[0][i]}, ${this.y.name} ${this.names[1][j]}: ${short(this.values[i * rows + j])}`;
  }
}
