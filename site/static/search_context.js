"use strict";
// Gives each result of the search the text around its first hit, from search_texts.js, which also loads from file:. Of a query of several
// words, pages that have them side by side come first.
(() => {
  const results = document.getElementById("search-results");
  const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/[^\p{Letter}\p{Number}_]+/u).filter(word => word);
  if (!results || !words.length || typeof courseTexts === "undefined") return;
  const root = new URL(".", location.href).href;
  const phrase = new RegExp(words.join("[^\\p{Letter}\\p{Number}_]+"), "iu");
  const any = new RegExp(`(${words.filter(word => word.length > 1).join("|") || words[0]})`, "iu");

  const context = item => {
    const link = item.querySelector("a");
    const text = courseTexts[link && link.href.startsWith(root) ? link.href.slice(root.length).replace(/\.html.*/, "") : ""];
    if (item.dataset.seen || !text) return;
    item.dataset.seen = "yes";
    const together = text.search(phrase), place = together >= 0 ? together : text.search(any);
    if (place < 0) return;
    const begin = Math.max(0, text.lastIndexOf(" ", Math.max(0, place - 60)) + 1);
    const end = text.indexOf(" ", place + 100) < 0 ? text.length : text.indexOf(" ", place + 100);
    const line = item.appendChild(document.createElement("p"));
    line.className = "search-context";
    line.append(begin ? "… " : "");
    text.slice(begin, end).split(any).forEach((piece, number) => {
      if (number % 2) line.appendChild(document.createElement("strong")).textContent = piece;
      else line.append(piece);
    });
    line.append(end < text.length ? " …" : "");
    if (words.length > 1 && together >= 0) {
      item.dataset.together = "yes";
      const apart = [...item.parentElement.children].find(other => !other.dataset.together);
      if (apart && apart.compareDocumentPosition(item) & Node.DOCUMENT_POSITION_FOLLOWING) item.parentElement.insertBefore(item, apart);
    }
  };

  const all = () => results.querySelectorAll("ul.search > li").forEach(context);
  new MutationObserver(all).observe(results, { childList: true, subtree: true });
  all();
})();
