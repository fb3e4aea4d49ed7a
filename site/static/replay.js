// The replay of one warp: a stepper over the steps that ./course inspect --trace has recorded. The data stands in the page
// (site/kernels.py): places, and for each step [index of its place, mask of lanes, transactions, ideal, runs of offsets]. What
// a step does, in words, is in the table of the steps.
"use strict";

(() => {
  const LANES = 32, BANKS = 32, WORD = 4, SECTOR = 32, PERIOD_MS = 900, MOST_ROWS = 40;

  // Of steps that are no accesses.
  const CAPTIONS = {
    barrier: "No lane goes on before all threads of the block have arrived.",
    collective: "The lanes execute this instruction together: each waits for the others.",
    arrival: "The lanes announce that they have come so far.",
    wait: "No lane goes on before the phase of the barrier has ended: all arrivals and, at an mbarrier, all bytes of its copies have come.",
    blocks_barrier: "Threads of several blocks wait for each other.",
    bulk_load: "The lane goes on at once. A unit of the multiprocessor (TMA) copies; an mbarrier counts the bytes.",
    bulk_store: "The lane goes on at once. A unit of the multiprocessor (TMA) copies.",
  };

  const make = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  // Offsets of the 32 lanes; null: not active.
  const decode = ([place, mask, transactions, ideal, ...runs], places) => {
    const step = {...places[place], mask: mask >>> 0, lanes: []};
    for (let lane = 0; lane < LANES; ++lane) if (step.mask >>> lane & 1) step.lanes.push(lane);
    if (!step.space) return step;
    const active = [];
    for (let r = 0; r < runs.length; r += 3)
      for (let i = 0; i < runs[r + 2]; ++i) active.push(runs[r] + i * runs[r + 1]);
    const offsets = new Array(LANES).fill(null);
    step.lanes.forEach((lane, i) => { offsets[lane] = active[i]; });
    return {...step, transactions, ideal, offsets};
  };

  // Words (4 bytes) -> the lanes that access them.
  const wordsOf = step => {
    const words = new Map();
    for (const lane of step.lanes) {
      const last = Math.floor((step.offsets[lane] + step.bytes - 1) / WORD);
      for (let word = Math.floor(step.offsets[lane] / WORD); word <= last; ++word) {
        if (!words.has(word)) words.set(word, []);
        words.get(word).push(lane);
      }
    }
    return words;
  };

  // Of the bytes of a sector or a word, lanes may access only some.
  const bytesOf = step => {
    const bytes = new Set();
    for (const lane of step.lanes) for (let i = 0; i < step.bytes; ++i) bytes.add(step.offsets[lane] + i);
    return bytes.size;
  };

  const sentenceOfLane = (step, lane) => {
    if (!step.lanes.includes(lane)) return `Lane ${lane} takes no part.`;
    if (!step.space) return `Lane ${lane} ${step.kind.startsWith("bulk") ? "issues the copy" : step.kind === "collective" ? "takes part" : step.kind === "arrival" ? "arrives" : "waits"}.`;
    const offset = step.offsets[lane];
    const bank = byte => Math.floor(byte / WORD) % BANKS;
    const [first, last] = [bank(offset), bank(offset + step.bytes - 1)];
    const banks = first === last ? `bank ${first}` : `banks ${first} to ${last}`;
    const where = step.space === "shared" ? banks : `sector ${Math.floor(offset / SECTOR)}`;
    const bytes = step.bytes === 1 ? `byte ${offset}` : `bytes ${offset} to ${offset + step.bytes - 1}`;
    return `Lane ${lane}: ${bytes} of "${step.array}", ${where}.`;
  };

  class Replay {
    constructor(root) {
      const data = JSON.parse(root.querySelector("script").textContent);
      this.kernel = data.kernel;
      this.number = data.number;
      this.total = data.total;
      const rows = root.querySelectorAll("tbody tr");
      this.steps = data.recorded.map((entry, at) => ({...decode(entry, data.places), sentence: rows[at].cells[2].textContent}));
      this.at = 0;
      this.lane = 0;
      this.timer = null;
      const widest = new Map();
      this.steps.forEach((step, at) => {
        const place = data.recorded[at][0], before = widest.get(place);
        if (before === undefined || step.transactions > this.steps[before].transactions) widest.set(place, at);
      });
      this.widest = [...widest.values()];
      this.build(root);
      this.show();
      this.keepHeight();
      window.addEventListener("resize", () => this.keepHeight());
    }

    build(root) {
      const box = make("div", "replay-box");
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", `Replay of ${this.kernel}: arrow keys step, space plays and pauses`);
      const button = (text, label, action) => {
        const node = make("button", "", text);
        node.type = "button";
        if (label) node.setAttribute("aria-label", label);
        node.addEventListener("click", action);
        return node;
      };
      this.playButton = button("Play", "", () => this.toggle());
      const bar = make("div", "replay-bar");
      this.slider = make("input");
      Object.assign(this.slider, {type: "range", min: 1, max: this.steps.length, value: 1});
      this.slider.setAttribute("aria-label", "Step");
      this.slider.addEventListener("input", () => { this.pause(); this.go(this.slider.value - 1); });
      this.counter = make("span", "replay-count");
      bar.append(button("|◀", "First step", () => { this.pause(); this.go(0); }),
                 button("◀", "Previous step", () => { this.pause(); this.go(this.at - 1); }), this.playButton,
                 button("▶", "Next step", () => { this.pause(); this.go(this.at + 1); }), this.slider, this.counter);

      this.live = make("p", "replay-says");
      this.live.setAttribute("aria-live", "polite");
      this.code = make("pre", "replay-line");
      this.code.tabIndex = 0;
      this.code.setAttribute("role", "region");
      this.code.setAttribute("aria-label", "The line of source");

      const chooser = make("label", "replay-lane", "Lane ");
      this.laneInput = make("input");
      Object.assign(this.laneInput, {type: "number", min: 0, max: LANES - 1, value: 0});
      this.laneInput.addEventListener("input", () => this.choose(Number(this.laneInput.value)));
      this.laneText = make("span", "replay-lane-says");
      chooser.append(this.laneInput);
      const laneRow = make("p", "replay-lane-row");
      laneRow.append(chooser, this.laneText);

      this.lanes = make("div", "replay-lanes");
      this.lanes.setAttribute("aria-hidden", "true");
      for (let lane = 0; lane < LANES; ++lane) {
        const cell = make("span", "cell", lane);
        cell.addEventListener("click", () => this.choose(lane));
        this.lanes.append(cell);
      }
      this.caption = make("p", "replay-caption");
      this.memory = make("div", "replay-memory");
      this.memory.setAttribute("aria-hidden", "true");
      this.memory.addEventListener("click", event => {
        if (event.target.dataset.lane !== undefined) this.choose(Number(event.target.dataset.lane));
      });
      box.append(bar, this.live, this.code, this.lanes, laneRow, this.caption, this.memory);
      box.addEventListener("keydown", event => this.key(event));
      root.prepend(box);
      this.box = box;
    }

    key(event) {
      if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "INPUT") return;
      const moves = {ArrowRight: this.at + 1, ArrowLeft: this.at - 1, Home: 0, End: this.steps.length - 1};
      if (event.key in moves) {
        this.pause();
        this.go(moves[event.key]);
      } else if (event.key === " " && event.target.tagName !== "BUTTON") {
        this.toggle();
      } else {
        return;
      }
      event.preventDefault();
    }

    toggle() { if (this.timer) this.pause(); else this.play(); }
    play() {
      if (this.at === this.steps.length - 1) this.go(0);
      // A screen reader could not keep up.
      this.live.setAttribute("aria-live", "off");
      this.timer = setInterval(() => {
        if (this.at + 1 < this.steps.length) this.go(this.at + 1);
        if (this.at + 1 === this.steps.length) this.pause();
      }, PERIOD_MS);
      this.playButton.textContent = "Pause";
      this.reserve();
    }
    pause() {
      if (!this.timer) return;
      clearInterval(this.timer);
      this.timer = null;
      this.reserve();
      this.live.setAttribute("aria-live", "polite");
      this.playButton.textContent = "Play";
    }
    go(at) {
      this.at = Math.max(0, Math.min(at, this.steps.length - 1));
      this.show();
    }
    choose(lane) {
      if (!(lane >= 0 && lane < LANES)) return;
      this.lane = Math.floor(lane);
      this.laneInput.value = this.lane;
      this.show();
    }

    row(step) { return document.getElementById(`k${this.number}-${step.file}-${step.line}`); }

    show() {
      const step = this.steps[this.at];
      this.slider.value = this.at + 1;
      const says = `Step ${this.at + 1} of ${this.steps.length}, line ${step.line}: ${step.sentence}.`;
      this.slider.setAttribute("aria-valuetext", says);
      this.counter.textContent = `${this.at + 1} / ${this.steps.length}`;
      if (this.live.textContent !== says) this.live.textContent = says;
      this.laneText.textContent = sentenceOfLane(step, this.lane);

      const row = this.row(step);
      if (this.current) this.current.classList.remove("now");
      if (row) row.classList.add("now");
      this.current = row;
      this.code.replaceChildren(make("span", "number", `${step.line} `));
      if (row) this.code.append(...row.querySelector("code").cloneNode(true).childNodes);
      else this.code.append(step.text);

      [...this.lanes.children].forEach((cell, lane) => {
        cell.className = "cell" + (step.lanes.includes(lane) ? " on" : "") + (lane === this.lane ? " chosen" : "");
      });
      this.draw(step);
      this.reserve();
    }

    // The box has room for its tallest step, so that the text below moves less, but at most half of this step's height is empty.
    // While it plays, nothing moves.
    reserve() {
      if (!this.tallest) return;
      this.box.style.minHeight = "";
      const most = this.timer ? this.tallest : Math.min(this.tallest, 1.5 * this.box.offsetHeight);
      this.box.style.minHeight = `${Math.floor(most)}px`;
    }

    // The height of the tallest step. Of each place in the source only the step with the most transactions is shown for that.
    keepHeight() {
      if (this.box.offsetWidth === this.width) return;
      const now = this.at, live = this.live.getAttribute("aria-live");
      this.width = this.box.offsetWidth;
      this.box.style.minHeight = "";
      this.live.setAttribute("aria-live", "off");
      let tallest = this.tallest = 0; // nothing is reserved meanwhile
      for (const at of this.widest) {
        this.go(at);
        tallest = Math.max(tallest, this.box.offsetHeight);
      }
      this.tallest = Math.ceil(tallest);
      this.go(now);
      this.live.setAttribute("aria-live", live);
    }

    draw(step) {
      this.memory.replaceChildren();
      this.memory.className = "replay-memory " + (step.space || "waits");
      if (!step.space) {
        this.caption.textContent = CAPTIONS[step.kind] || "";
        return;
      }
      const words = wordsOf(step);
      if (step.space === "shared") this.showBanks(step, words);
      else this.showSectors(step, words);
    }

    word(word, words, colour) {
      const cell = make("span", "cell");
      const lanes = words.get(word);
      if (!lanes) return cell;
      cell.classList.add("on", `c${colour % 8}`);
      cell.textContent = lanes.length > 1 ? (lanes.length > 9 ? "all" : `${lanes[0]}+`) : lanes[0];
      if (lanes.length > 9 && lanes.length < LANES) cell.textContent = `${lanes[0]}+`;
      cell.dataset.lane = lanes[0];
      cell.title = `word ${word}: lane ${lanes.join(", ")}`;
      if (lanes.includes(this.lane)) cell.classList.add("chosen");
      return cell;
    }

    // A row of 32 words is a row of the banks; above each bank, how many words of it are accessed.
    showBanks(step, words) {
      this.caption.textContent =
        `"${step.array}", shared memory: a column is a bank, a row has 32 words of 4 bytes. Above each bank: how many different words are accessed. In a cell: its lane.`;
      const inBank = new Array(BANKS).fill(0);
      for (const word of words.keys()) ++inBank[word % BANKS];
      const most = Math.max(...inBank);
      const add = (label, cells, className) => {
        const row = make("div", `bank-row ${className}`);
        row.append(make("span", "label", label), ...cells);
        this.memory.append(row);
      };
      add("words", inBank.map(count => make("span", "head" + (count === most && most > 1 ? " most" : ""), count || "")), "heads");
      const used = new Set([...words.keys()].map(word => Math.floor(word / BANKS)));
      const last = Math.max(...this.steps.filter(other => other.array === step.array && other.space === "shared")
        .map(other => Math.floor((Math.max(...other.offsets) + other.bytes - 1) / (BANKS * WORD))));
      const rows = last < MOST_ROWS ? [...Array(last + 1).keys()] : [...used].sort((a, b) => a - b);
      let before = -1;
      for (const r of rows) { // an access has at most two for each lane
        if (r !== before + 1) this.memory.append(make("div", "gap", "⋯"));
        add(r * BANKS, Array.from({length: BANKS}, (_, bank) => this.word(r * BANKS + bank, words, bank)), "");
        before = r;
      }
    }

    showSectors(step, words) {
      const sectors = [...new Set([...words.keys()].map(word => Math.floor(word * WORD / SECTOR)))].sort((a, b) => a - b);
      this.caption.textContent = `"${step.array}", global memory: ${plural(sectors.length, "sector")} of 32 bytes, ` +
        `of which the lanes access ${bytesOf(step)} of ${sectors.length * SECTOR} bytes. In a cell, 4 bytes: its lane.`;
      let before = null;
      sectors.forEach((sector, i) => {
        const box = make("div", "sector" + (before !== null && sector !== before + 1 ? " apart" : ""));
        box.append(make("span", "label", `byte ${sector * SECTOR}`));
        const cells = make("div", "sector-words");
        for (let w = 0; w < SECTOR / WORD; ++w) cells.append(this.word(sector * SECTOR / WORD + w, words, i));
        box.append(cells);
        this.memory.append(box);
        before = sector;
      });
    }
  }

  const start = () => document.querySelectorAll(".replay").forEach(root => new Replay(root));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
