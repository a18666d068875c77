// One item: why it is recommended, how it was rated, what is similar, and where it lies on the map.

import * as api from "./api.js";
import { called, count, h, number, section } from "./dom.js";
import { distribution, waterfall } from "./charts.js";
import { ItemMap } from "./scatter.js";

export async function itemView({ about, id, asked }) {
  const item = await api.item(id);
  const person = asked.get("person");
  const suffix = person !== null ? `?person=${encodeURIComponent(person)}${asked.has("new") ? "&new=1" : ""}` : "";
  const back = person !== null ? h("a", { href: `#/person/${encodeURIComponent(person)}${asked.has("new") ? "?new=1" : ""}` }, asked.has("new") ? "Back to the new person" : `Back to ${called({ id: person })}`) : h("a", { href: "#/" }, "People");
  return [
    h("p", { class: "crumb" }, back),
    h("h1", {}, called(item)),
    h("p", { class: "facts" }, item.title ? h("span", { class: "chip quiet" }, `id ${item.id}`) : null, item.attributes.map((fact) => h("span", { class: "chip" }, `${fact.name}: ${fact.value}`))),
    h("div", { class: "columns item" },
      person !== null ? section("Why", () => why(about, person, id), { class: "card" }) : null,
      section(about.clicks ? "Choices" : "Ratings", () => ratings(about, item), { class: "card" }),
      section("Similar items", () => similar(id, suffix), { class: "card" }),
      section("On the map", () => onMap(id, suffix), { class: "card" })),
  ];
}

async function why(about, person, id) {
  const explanation = await api.explain(person, id);
  const spread = explanation.std ? ` ± ${number(explanation.std)}` : "";
  const sentence = explanation.latent
    ? `Parts add up to the ${explanation.latent}, from which ${about.clicks ? `a probability of ${number(explanation.predicted, 3)}` : `a rating of ${number(explanation.predicted)}`} follows.`
    : `The model expects ${number(explanation.predicted)}${spread}. From the average to there:`;
  const choice = explanation.choice
    ? [h("p", {}, `The probability that it is chosen is ${number(explanation.choice.predicted, 3)}. Parts of the ${explanation.choice.latent}:`), waterfall(explanation.choice)]
    : [];
  return [h("p", {}, sentence), waterfall(explanation), choice, h("p", { class: "quiet small" }, "Parts of the model, not causes: attributes that go together share the credit.")];
}

function ratings(about, item) {
  if (!item.count && !about.has_ratings) return h("p", { class: "quiet" }, "The model was saved without ratings.");
  if (!item.count) return h("p", { class: "quiet" }, about.clicks ? "Nobody has chosen it yet." : "Nobody has rated it yet: it is judged by its attributes.");
  if (about.clicks) return h("p", {}, `${count(item.count)} ${item.count === 1 ? "choice" : "choices"}.`);
  return [h("p", {}, `${count(item.count)} ${item.count === 1 ? "rating" : "ratings"}, ${number(item.mean)} on average.`), distribution(item.distribution)];
}

async function similar(id, suffix) {
  const found = await api.similar(id);
  if (!found.items.length) return h("p", { class: "quiet" }, "There is nothing to compare it with.");
  return [
    h("p", { class: "quiet small" }, "Liked by the same people, relative to what all like."),
    h("ol", { class: "plain" }, found.items.map((each) => h("li", {},
      h("a", { href: `#/item/${encodeURIComponent(each.item_id)}${suffix}` }, called(each)), h("span", { class: "value" }, number(each.similarity))))),
  ];
}

async function onMap(id, suffix) {
  const data = await api.itemMap();
  if (!data.ids.includes(id)) return h("p", { class: "quiet" }, "It is not on the map, which has the items with the most ratings.");
  return new ItemMap(data, { marked: id, height: 280, open: (other) => { location.hash = `#/item/${encodeURIComponent(other)}${suffix}`; } }).element;
}
