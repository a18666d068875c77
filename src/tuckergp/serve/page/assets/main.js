// The frame: which view belongs to the address, and the links between views.

import * as api from "./api.js";
import { h, put, say } from "./dom.js";
import { itemView } from "./item.js";
import { mapView } from "./map.js";
import { modelView } from "./model.js";
import { peopleView } from "./people.js";
import { personView } from "./person.js";
import { surfaceView } from "./surface.js";

const RECOMMENDER = [["people", "People"], ["map", "Map"], ["model", "Model"]];
const REGRESSOR = [["surface", "Predictions"], ["model", "Model"]];
const VIEWS = { people: peopleView, person: personView, item: itemView, map: mapView, model: modelView, surface: surfaceView };

const main = document.getElementById("main");
let about = null;
let first = true;
let shown = 0;

/** The parts of an address such as `#/item/42?person=7`. */
function parsed() {
  const [path, asked] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...rest] = path.split("/");
  return { view: view || (about.kind === "recommender" ? "people" : "surface"), id: decode(rest.join("/")), asked: new URLSearchParams(asked ?? "") };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function navigation(view) {
  const links = about.kind === "recommender" ? RECOMMENDER : REGRESSOR;
  const home = { person: "people", item: "people" }[view] ?? view;
  put(
    document.getElementById("nav"),
    links.map(([name, label]) => h("a", { href: `#/${name}`, "aria-current": name === home ? "page" : null }, label)),
  );
}

async function show() {
  if (location.hash === "#main") return main.focus();
  const number = (shown += 1); // a view that comes late does not take the place of a later one
  const where = parsed();
  navigation(where.view);
  const view = VIEWS[where.view];
  try {
    if (!view) throw new Error("There is no such page.");
    const content = await view({ about, ...where });
    if (number !== shown) return;
    put(main, content);
  } catch (error) {
    if (number !== shown) return;
    put(main, h("h1", {}, "Nothing to show"), h("p", { class: "fault" }, error.message), h("p", {}, h("a", { href: "#/" }, "Back to the start")));
  }
  const heading = main.querySelector("h1");
  document.title = `${heading?.textContent ?? "Model"} · tuckergp`;
  if (!first) {
    window.scrollTo(0, 0);
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
  }
  first = false;
  main.dataset.view = where.view;
}

try {
  about = await api.about();
  document.getElementById("file").textContent = about.file;
  window.addEventListener("hashchange", show);
  await show();
} catch (error) {
  put(main, h("h1", {}, "The model cannot be shown"), h("p", { class: "fault" }, error.message));
  say(error.message);
}
