"use strict";
// Draws the charts from the data in the page; answers clicks on marks that have details; turns light and dark.
(() => {
  const root = document.documentElement;
  const charts = JSON.parse(document.getElementById("charts").textContent);

  const button = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  prefersDark.addEventListener("change", name);
  name();

  const tell = (panel, facts) => {
    panel.replaceChildren();
    if (!facts) {
      panel.textContent = "Click on a dot.";
      return;
    }
    const list = document.createElement("dl");
    for (const [word, text] of facts) {
      if (!word) {
        const title = document.createElement("strong");
        title.textContent = text;
        panel.append(title);
        continue;
      }
      const term = document.createElement("dt");
      const value = document.createElement("dd");
      term.textContent = word;
      value.textContent = text;
      list.append(term, value);
    }
    panel.append(list);
  };

  const draw = async (place) => {
    const { spec, details } = charts[place.dataset.chart];
    const options = { actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: { theme: "custom" } };
    const { view } = await vegaEmbed(place, spec, options);
    if (details) {
      const panel = place.parentElement.querySelector(".details");
      view.addSignalListener("pick", (_, picked) => tell(panel, picked.id ? details[picked.id[0]] : null));
    }
  };

  Promise.all([...document.querySelectorAll(".chart")].map(draw)).then(
    () => { root.dataset.ready = "yes"; },
    (problem) => { root.dataset.ready = "no"; console.error(problem); },
  );
})();
