// Prints a page of an inspection as a browser shows it: runs its script, and puts what the script
// writes in its place.
// usage: node show_page.mjs PAGE
import {readFileSync} from "node:fs";

let page = readFileSync(process.argv[2], "utf8");
const [json, script] = [...page.matchAll(/<script[^>]*>([^]*?)<\/script>/g)].map(found => found[1]);
page = page.replace(json, () => "").replace(script, () => "");

const written = new Map();
class Element {
  constructor(id) { this.id = id; }
  get textContent() { return json; }
  set innerHTML(html) { written.set(this.id, html); }
}
globalThis.document = {
  getElementById(id) {
    if (!page.includes(` id="${id}"`)) throw new Error(`no element has the id ${id}`);
    return new Element(id);
  },
  querySelector: () => new Element(),
  querySelectorAll: () => [],
};
globalThis.IntersectionObserver = class { observe() {} };
new Function(script)();

for (const [id, html] of written) {
  const empty = new RegExp(`(<(\\w+)[^>]* id="${id}">)(</\\2>)`);
  if (!empty.test(page)) throw new Error(`the element ${id} is not empty`);
  page = page.replace(empty, (_, opening, __, closing) => opening + html + closing);
}
console.log(page.replace("<title></title>", () => {
  const title = document.title.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<title>${title}</title>`;
}));
