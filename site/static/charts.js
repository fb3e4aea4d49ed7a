// The charts: a tooltip at the nearest point, and a line that is highlighted. Without this script each
// point has a <title>, and the table below a chart has the figures; of a sweep, the means.
"use strict";

(() => {
  function start(figure) {
    const svg = figure.querySelector(":scope > svg");
    const points = [...svg.querySelectorAll(".chart-point")].map((path) => ({
      x: Number(path.dataset.x),
      y: Number(path.dataset.y),
      series: path.closest("[data-series]").dataset.series,
      isSmall: path.classList.contains("chart-dot"), // of a sweep: the keyboard goes along the line only
      text: takeTitle(path),
    }));
    if (points.length === 0) return; // bars have their figures beside them
    const tip = document.createElement("div");
    tip.className = "chart-tip";
    tip.setAttribute("role", "status");
    figure.append(tip);
    let chosen = null; // the series whose button is pressed
    const buttons = new Map();

    // The browser's own tooltip would cover ours.
    function takeTitle(path) {
      const title = path.querySelector("title");
      title.remove();
      return title.textContent;
    }

    function highlight(series) {
      figure.classList.toggle("chart-on", series !== null);
      for (const part of figure.querySelectorAll("[data-series]"))
        part.classList.toggle("chart-chosen", part.dataset.series === series);
    }

    function show(point) {
      highlight(point.series);
      const box = svg.getBoundingClientRect();
      const scale = box.width / svg.viewBox.baseVal.width;
      tip.textContent = point.text;
      const room = figure.clientWidth - tip.offsetWidth;
      tip.style.left = Math.max(0, Math.min(room, point.x * scale + 8)) + "px";
      tip.style.top = Math.max(0, box.top - figure.getBoundingClientRect().top + point.y * scale - tip.offsetHeight - 8) + "px";
    }

    function hide() {
      tip.textContent = "";
      highlight(chosen);
    }

    function showNearest(event) {
      const box = svg.getBoundingClientRect();
      const scale = box.width / svg.viewBox.baseVal.width;
      const distance = (point) =>
        Math.hypot((event.clientX - box.left) / scale - point.x, (event.clientY - box.top) / scale - point.y);
      const candidates = chosen === null ? points : points.filter((point) => point.series === chosen);
      const nearest = candidates.reduce((best, point) => (distance(point) < distance(best) ? point : best), candidates[0]);
      if (nearest && distance(nearest) < 40) show(nearest);
      else hide();
    }
    svg.addEventListener("pointermove", showNearest);
    svg.addEventListener("pointerdown", showNearest);
    // What a finger has tapped stays until it taps elsewhere.
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
    document.addEventListener("pointerdown", (event) => { if (!figure.contains(event.target)) hide(); });

    // A name in the legend becomes a button; with the arrow keys it goes from point to point.
    for (const item of figure.querySelectorAll(".chart-legend li")) {
      const series = item.dataset.series;
      const own = points.filter((point) => point.series === series && !point.isSmall);
      if (own.length === 0) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "false");
      button.append(...item.childNodes);
      item.append(button);
      buttons.set(series, button);
      let place = -1;
      button.addEventListener("click", () => {
        chosen = chosen === series ? null : series;
        for (const [name, each] of buttons) each.setAttribute("aria-pressed", String(name === chosen));
        hide();
      });
      button.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (event.key === "Escape") hide();
        if (!step) return;
        event.preventDefault();
        place = place < 0 ? (step > 0 ? 0 : own.length - 1) : Math.max(0, Math.min(own.length - 1, place + step));
        show(own[place]);
      });
      button.addEventListener("pointerenter", () => highlight(series));
      button.addEventListener("pointerleave", hide);
      button.addEventListener("focus", () => highlight(series));
      button.addEventListener("blur", () => {
        place = -1;
        hide();
      });
    }
  }

  const startAll = () => document.querySelectorAll("figure.chart").forEach(start);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();
