// The page with the map of all items.

import * as api from "./api.js";
import { h, number } from "./dom.js";
import { ItemMap } from "./scatter.js";

export async function mapView() {
  const data = await api.itemMap();
  if (!data.ids.length) return [h("h1", {}, "Map of items"), h("p", { class: "quiet" }, "No item has ratings.")];
  const held = 100 * data.share.reduce((sum, part) => sum + part, 0);
  const more = data.left_out ? ` The ${data.ids.length} items with the most ratings are shown.` : "";
  return [
    h("h1", {}, "Map of items"),
    h("p", { class: "lead" }, `Items that the same people like lie close together. The two axes hold ${number(held, 0)} % of what sets items apart, so neighbours here may still differ.${more}`),
    new ItemMap(data, { height: 560, find: true, open: (id) => { location.hash = `#/item/${encodeURIComponent(id)}`; } }).element,
  ];
}
