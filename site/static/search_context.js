"use strict";
// Gives each result of the search the text around its first hit, from search_texts.js, which also loads from file:.
(() => {
  const results = document.getElementById("search-results");
  const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/[^\p{Letter}\p{Number}_]+/u).filter(word => word.length > 1);
  if (!results || !words.length || typeof courseTexts === "undefined") return;
  const root = new URL(".", location.href).href;

  // Where the words are: as the phrase of the query if it occurs, else the first of them.
  const find = text => {
    const phrase = text.toLowerCase().search(new RegExp(words.map(word => word.replace(/[^\w]/g, "\\$&")).join("[^\\p{Letter}\\p{Number}_]+"), "u"));
    return phrase >= 0 ? phrase : Math.min(...words.map(word => text.toLowerCase().indexOf(word)).filter(place => place >= 0));
  };

  const context = item => {
    const link = item.querySelector("a");
    const name = link && link.href.startsWith(root) ? link.href.slice(root.length).replace(/\.html.*/, "") : "";
    const text = courseTexts[name];
    const place = text ? find(text) : Infinity;
    if (!Number.isFinite(place) || item.querySelector(".search-context")) return;
    const begin = Math.max(0, text.lastIndexOf(" ", Math.max(0, place - 60)) + 1);
    const end = text.indexOf(" ", place + 100) < 0 ? text.length : text.indexOf(" ", place + 100);
    const line = item.appendChild(document.createElement("p"));
    line.className = "search-context";
    const pieces = text.slice(begin, end).split(new RegExp(`(${words.map(word => word.replace(/[^\w]/g, "\\$&")).join("|")})`, "iu"));
    line.append(begin ? "… " : "");
    pieces.forEach((piece, number) => {
      if (number % 2) line.appendChild(document.createElement("strong")).textContent = piece;
      else line.append(piece);
    });
    line.append(end < text.length ? " …" : "");
  };

  const all = () => results.querySelectorAll("ul.search > li").forEach(context);
  new MutationObserver(all).observe(results, { childList: true, subtree: true });
  all();
})();
