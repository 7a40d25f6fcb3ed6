// Two classes beside each other: of columns their panels, of words what tells the two apart.

const COLOURS = 6;

function colour(classes, chosen) {
  const places = new Map((chosen ?? classes).map((k, place) => [k, place]));
  const rules = classes.map((k) =>
    places.has(k)
      ? `.k${k} { --own: var(--k${places.get(k) % COLOURS}); }`
      : `.k.k${k} { display: none; }`,
  );
  document.getElementById("chosen").textContent = rules.join("\n");
}

// The place of a pair in lists of the first with the second, third .., the second with the third ..
function pair(n, i, j) {
  const [a, b] = i < j ? [i, j] : [j, i];
  return (a * (2 * n - a - 1)) / 2 + (b - a - 1);
}

function arrange(classes, chosen) {
  const box = document.querySelector(".panels");
  if (!box) return;
  const [i, j] = (chosen ?? []).map((k) => classes.indexOf(k));
  const told = new Map();
  for (const panel of box.children) {
    const bits = chosen
      ? (i === j ? 0 : panel.dataset.pairs.split(" ")[pair(classes.length, i, j)] / 1000)
      : Number(panel.dataset.tells);
    told.set(panel, bits);
    panel.querySelector(".tells").textContent = `${bits.toFixed(bits < 0.1 ? 3 : 2)} bits`;
  }
  box.append(...[...box.children].sort((a, b) => told.get(b) - told.get(a)));
}

function telling(data, i, j) {
  const found = data.words.map((word, w) => {
    const [own, other] = [-data.scores[i][w] / 1000, -data.scores[j][w] / 1000];
    return { word, odds: own - other, score: Math.exp(own) * (own - other) };
  });
  found.sort((a, b) => b.score - a.score);
  return found.slice(0, data.most).filter((each) => each.score > 0);
}

function card(k, title, words) {
  const box = document.createElement("div");
  box.className = `card pair k${k}`;
  box.append(Object.assign(document.createElement("h3"), { textContent: title }));
  const list = box.appendChild(document.createElement("ol"));
  for (const { word, odds, score } of words) {
    const item = list.appendChild(document.createElement("li"));
    const name = Object.assign(document.createElement("span"), { textContent: word });
    name.title = `adds ${odds.toFixed(2)} to the log-odds`;
    const bar = document.createElement("i");
    bar.className = `k${k}`;
    bar.style.setProperty("--p", (100 * score) / words[0].score);
    item.append(name, bar);
  }
  return box;
}

function compareWords(data, chosen) {
  const box = document.getElementById("words");
  if (!box) return;
  for (const old of box.querySelectorAll(".pair")) old.remove();
  for (const each of box.children) each.hidden = chosen !== null;
  if (!chosen || chosen[0] === chosen[1]) return;
  const [i, j] = chosen.map((k) => data.classes.indexOf(k));
  for (const [a, b] of [[i, j], [j, i]])
    box.append(card(data.classes[a], `${data.names[a]}, not ${data.names[b]}`, telling(data, a, b)));
}

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("compare");
  if (!form) return;
  const [one, other, every] = ["one", "other", "every"].map((id) => document.getElementById(id));
  const classes = form.dataset.classes.split(" ").map(Number);
  const stored = document.getElementById("telling");
  const data = stored && JSON.parse(stored.textContent);
  const show = (all) => {
    const chosen = all ? null : [Number(one.value), Number(other.value)];
    every.setAttribute("aria-pressed", String(all));
    colour(classes, chosen);
    arrange(classes, chosen);
    if (data) compareWords(data, chosen);
  };
  for (const each of [one, other]) each.addEventListener("change", () => show(false));
  every.addEventListener("click", () => show(every.getAttribute("aria-pressed") !== "true"));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show(form.dataset.all === "true");
});
