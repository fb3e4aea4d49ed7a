"use strict";
// From file: a search cannot read pages for its summaries; it lists titles and headings only.
if (window.DOCUMENTATION_OPTIONS && location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// Code, tables and figures that go on beyond their right edge are marked, because a phone shows no scroll bar.
addEventListener("DOMContentLoaded", () => {
  const mark = box => box.classList.toggle("goes-on", box.scrollWidth - box.scrollLeft > box.clientWidth + 4);
  const sizes = new ResizeObserver(entries => entries.forEach(entry => mark(entry.target)));
  for (const box of document.querySelectorAll(".highlight > pre, .table-wrapper, .figure, .course-source")) {
    sizes.observe(box);
    box.addEventListener("scroll", () => mark(box), { passive: true });
  }
});

// On paper nothing can be unfolded: hints and answers are printed.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("article details:not([open])")];
  for (const each of folded) each.open = true;
});
addEventListener("afterprint", () => { for (const each of folded) each.open = false; });
