// Shows one slide at a time, turned by keys or buttons. Without this script the page holds all slides, one below the other.
"use strict";
(() => {
  const slides = [...document.querySelectorAll(".slide")];
  const root = document.documentElement;
  let current = 0;

  const bar = document.createElement("nav");
  bar.className = "steps";
  bar.setAttribute("aria-label", "Slides");
  const button = (text, action) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", action);
    bar.append(made);
    return made;
  };
  const previous = button("Previous", () => show(current - 1));
  const next = button("Next", () => show(current + 1));
  const all = button("All slides", () => toggleAll());
  const place = document.createElement("p");
  place.setAttribute("aria-live", "polite");
  bar.append(place);

  function show(number, focus = true) {
    current = Math.min(Math.max(number, 0), slides.length - 1);
    slides.forEach((slide, index) => slide.classList.toggle("current", index === current));
    place.textContent = `${current + 1} of ${slides.length}`;
    previous.setAttribute("aria-disabled", String(current === 0));
    next.setAttribute("aria-disabled", String(current === slides.length - 1));
    history.replaceState(null, "", `#slide-${current + 1}`);
    if (focus) slides[current].focus({ preventScroll: !root.classList.contains("stepped") });
    if (!root.classList.contains("stepped")) slides[current].scrollIntoView();
    else window.scrollTo(0, 0);
  }

  function toggleAll() {
    const stepped = root.classList.toggle("stepped");
    all.textContent = stepped ? "All slides" : "One slide";
    show(current);
  }

  const keys = {
    ArrowRight: () => show(current + 1), PageDown: () => show(current + 1), " ": () => show(current + 1),
    ArrowLeft: () => show(current - 1), PageUp: () => show(current - 1),
    Home: () => show(0), End: () => show(slides.length - 1), a: toggleAll,
  };
  document.addEventListener("keydown", (event) => {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key; // A with Shift or Caps Lock, too
    if (event.ctrlKey || event.altKey || event.metaKey || !keys[key]) return;
    const inside = event.target.closest("a, button, summary, pre, .wide");
    if (inside && (key === " " || (inside.matches("pre, .wide") && key.startsWith("Arrow")))) return;
    event.preventDefault();
    keys[key]();
  });
  window.addEventListener("hashchange", () => show(numberInAddress()));

  function numberInAddress() {
    const match = /^#slide-(\d+)$/.exec(location.hash);
    return match ? Number(match[1]) - 1 : 0;
  }

  document.body.append(bar);
  root.classList.add("stepped", "with-steps");
  show(numberInAddress(), false);
})();
