// A map of items on a canvas: drag or arrow keys to move, wheel or + and - to zoom, hover or the centre names an item.

import { fresh, h, put } from "./dom.js";

const COLOURS = ["#3f6fb5", "#c8792b", "#4f9a6b", "#a8508f", "#b0a13a", "#3f9fa8", "#c2524a", "#7a6bc2"];
const OTHER = "#8d939a";
const NEAR = 14;

export class ItemMap {
  constructor(data, { height, marked = null, find = false, open }) {
    Object.assign(this, { data, open, marked: data.ids.indexOf(marked), height });
    this.view = { x: 0, y: 0, zoom: 1 };
    this.colour = 0;
    this.only = null;
    this.hover = -1;
    this.readout = h("p", { class: "readout", "aria-live": "polite" }, "");
    this.legend = h("div", { class: "legend" });
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-label": `Map of ${data.ids.length} items. Arrow keys move, plus and minus zoom, Enter opens the item nearest to the centre, which is named below.`,
      css: { height: `${height}px` },
    });
    this.fit();
    this.listen();
    this.element = h("div", { class: "map" }, this.tools(find), this.canvas, this.readout, this.legend);
    this.drawLegend();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    if (this.marked >= 0) this.readout.textContent = this.named(this.marked);
  }

  /** The region that holds nearly all items, and the marked one. */
  fit() {
    const ends = (values) => {
      const sorted = values.toSorted((a, b) => a - b);
      const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
      const own = this.marked >= 0 ? [values[this.marked]] : [];
      return [Math.min(at(0.005), ...own), Math.max(at(0.995), ...own)];
    };
    const [[left, right], [bottom, top]] = [ends(this.data.x), ends(this.data.y)];
    this.home = { x: (left + right) / 2, y: (bottom + top) / 2, wide: right - left || 1, high: top - bottom || 1 };
    this.view = { x: this.home.x, y: this.home.y, zoom: 1 };
  }

  tools(find) {
    const button = (label, text, action) => h("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
    const { colours } = this.data;
    const id = fresh("colour");
    const pick = colours.length ? h("span", { class: "inline" }, h("label", { for: id }, "Colour"), h("select", { id, onchange: (event) => { this.colour = Number(event.target.value); this.only = null; this.drawLegend(); this.draw(); } },
      colours.map((each, k) => h("option", { value: k }, each.name)))) : null;
    return h("div", { class: "tools" }, pick, find ? this.finder() : null, h("span", { class: "zoom" },
      button("Zoom in", "+", () => this.zoom(1.5)), button("Zoom out", "−", () => this.zoom(1 / 1.5)), button("Show all", "⤢", () => { this.fit(); this.draw(); })));
  }

  finder() {
    const look = (event) => {
      const text = event.target.value.trim().toLowerCase();
      this.marked = text ? this.data.ids.findIndex((id, k) => this.named(k).toLowerCase().includes(text)) : -1;
      if (this.marked >= 0) Object.assign(this.view, { x: this.data.x[this.marked], y: this.data.y[this.marked], zoom: Math.max(this.view.zoom, 2.5) });
      this.readout.textContent = this.marked >= 0 ? this.named(this.marked) : text ? "No item on the map is called so." : "";
      this.draw();
    };
    return h("input", { type: "search", placeholder: "Find on the map", "aria-label": "Find an item on the map", oninput: look });
  }

  named(k) {
    return this.data.titles[k] ?? this.data.ids[k];
  }

  drawLegend() {
    const colouring = this.data.colours[this.colour];
    if (!colouring) return;
    put(this.legend, colouring.values.map((value, k) => h("button", {
      type: "button",
      "aria-pressed": this.only === k ? "true" : "false",
      title: `Only ${value}`,
      onclick: () => { this.only = this.only === k ? null : k; this.drawLegend(); this.draw(); this.legend.children[k].focus(); },
    }, h("span", { class: "key", css: { background: COLOURS[k] } }), value)));
  }

  scale() {
    const { clientWidth: width } = this.canvas;
    return 0.92 * Math.min(width / this.home.wide, this.height / this.home.high) * this.view.zoom;
  }

  at(k) {
    const scale = this.scale();
    return [this.canvas.clientWidth / 2 + (this.data.x[k] - this.view.x) * scale, this.height / 2 - (this.data.y[k] - this.view.y) * scale];
  }

  nearest(x, y, within) {
    let [best, far] = [-1, within * within];
    for (let k = 0; k < this.data.ids.length; k += 1) {
      const [px, py] = this.at(k);
      const d = (px - x) ** 2 + (py - y) ** 2;
      if (d < far && this.shown(k)) [best, far] = [k, d];
    }
    return best;
  }

  shown(k) {
    const colouring = this.data.colours[this.colour];
    return this.only === null || colouring.of_items[k].includes(this.only);
  }

  draw() {
    const { canvas, height } = this;
    const [width, dense] = [canvas.clientWidth, window.devicePixelRatio || 1];
    if (!width) return;
    canvas.width = width * dense;
    canvas.height = height * dense;
    const pen = canvas.getContext("2d");
    pen.scale(dense, dense);
    const style = getComputedStyle(canvas);
    const [ink, paper] = [style.color, style.getPropertyValue("--card").trim()];
    const colouring = this.data.colours[this.colour];
    const size = Math.min(6, Math.max(2, (this.data.ids.length > 1500 ? 2.2 : 3.2) * Math.sqrt(this.view.zoom)));
    for (const front of [false, true]) {
      for (let k = 0; k < this.data.ids.length; k += 1) {
        const own = colouring?.of_items[k] ?? [];
        const value = this.only !== null && own.includes(this.only) ? this.only : own[0];
        const active = this.shown(k) && value !== undefined;
        if (active !== front) continue;
        const [x, y] = this.at(k);
        if (x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
        pen.globalAlpha = active ? 0.8 : 0.22;
        pen.fillStyle = active ? COLOURS[value] : OTHER;
        pen.beginPath();
        pen.arc(x, y, size, 0, 2 * Math.PI);
        pen.fill();
      }
    }
    pen.globalAlpha = 1;
    for (const k of new Set([this.marked, this.hover])) if (k >= 0) this.label(pen, k, ink, paper, size, width);
    canvas.dataset.drawn = "yes";
  }

  label(pen, k, ink, paper, size, width) {
    const [x, y] = this.at(k);
    pen.lineWidth = 2;
    pen.strokeStyle = ink;
    pen.beginPath();
    pen.arc(x, y, size + 3, 0, 2 * Math.PI);
    pen.stroke();
    pen.font = `600 13px ${getComputedStyle(this.canvas).fontFamily}`;
    const text = this.named(k).slice(0, 60);
    const wide = pen.measureText(text).width;
    const left = Math.min(width - wide - 8, Math.max(6, x - wide / 2));
    const base = y > 34 ? y - size - 10 : y + size + 20;
    pen.globalAlpha = 0.88;
    pen.fillStyle = paper;
    pen.fillRect(left - 4, base - 13, wide + 8, 18);
    pen.globalAlpha = 1;
    pen.fillStyle = ink;
    pen.fillText(text, left, base);
  }

  zoom(by, x = this.canvas.clientWidth / 2, y = this.height / 2) {
    const before = this.scale();
    this.view.zoom = Math.min(60, Math.max(0.5, this.view.zoom * by));
    const change = 1 / before - 1 / this.scale();
    this.view.x += (x - this.canvas.clientWidth / 2) * change;
    this.view.y -= (y - this.height / 2) * change;
    this.draw();
  }

  pan(dx, dy) {
    const scale = this.scale();
    this.view.x -= dx / scale;
    this.view.y += dy / scale;
    this.draw();
  }

  point(k) {
    if (k === this.hover) return;
    this.hover = k;
    const shown = k >= 0 ? k : this.marked;
    this.readout.textContent = shown >= 0 ? `${this.named(shown)}${this.data.count[shown] ? ` · ${this.data.count[shown].toLocaleString("en")} ratings` : ""}` : "";
    this.canvas.classList.toggle("on-item", k >= 0);
    this.draw();
  }

  centre() {
    this.point(this.nearest(this.canvas.clientWidth / 2, this.height / 2, 1e9));
  }

  listen() {
    const { canvas } = this;
    const pointers = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = pointers.get(event.pointerId);
      const here = [event.offsetX, event.offsetY];
      if (!last) return this.point(this.nearest(...here, NEAR));
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) { // two fingers
        const apart = ([x, y]) => Math.hypot(x - other[0], y - other[1]) || 1;
        this.zoom(apart(here) / apart(last), (here[0] + other[0]) / 2, (here[1] + other[1]) / 2);
      } else this.pan(here[0] - last[0], here[1] - last[1]);
      moved += Math.hypot(here[0] - last[0], here[1] - last[1]);
      pointers.set(event.pointerId, here);
      return undefined;
    });
    canvas.addEventListener("pointerup", (event) => {
      pointers.delete(event.pointerId);
      const k = moved < 5 ? this.nearest(event.offsetX, event.offsetY, NEAR) : -1;
      if (k >= 0) this.open(this.data.ids[k]);
    });
    canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
      if (step) this.pan(...step);
      else if (event.key === "+" || event.key === "=") this.zoom(1.3);
      else if (event.key === "-") this.zoom(1 / 1.3);
      else if (event.key === "Enter" && this.hover >= 0) return this.open(this.data.ids[this.hover]);
      else return undefined;
      event.preventDefault();
      return this.centre();
    });
    canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) this.centre(); });
  }
}
