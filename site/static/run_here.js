// Runs a kernel in the page (site/run_here.py). The kernels and the runtime are a script of their own, which is loaded at
// the first run. Each run has a new worker, which a reader can stop.
"use strict";

(() => {
  const SCRIPT = new URL("run_here_kernels.js", document.currentScript.src).href;
  const MOST_THREADS = 1024, SEED = 1;
  let numbered = 0;

  const make = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  let loading = null;
  const load = version => loading ||= new Promise((resolve, reject) => {
    const script = make("script");
    script.src = version ? `${SCRIPT}?v=${version}` : SCRIPT;
    script.onload = () => resolve(URL.createObjectURL(new Blob([`(${window.runHereKernels})()`], {type: "text/javascript"})));
    script.onerror = () => { loading = null; reject(new Error("the kernels cannot be loaded")); };
    document.head.append(script);
  });

  // What is wrong with the numbers of the form; empty: nothing.
  const faultOf = (fields, block) => {
    for (const {label, input, most} of fields) {
      const value = input.value.trim();
      if (!/^\d+$/.test(value) || Number(value) < 1 || Number(value) > most)
        return `"${label}" is "${value}"; expected a whole number from 1 to ${most}.`;
    }
    const sides = block.map(field => Number(field.input.value)), threads = sides.reduce((a, b) => a * b);
    return threads > MOST_THREADS ? `The block is ${sides.join(" × ")} = ${threads} threads; expected at most ${MOST_THREADS}.` : "";
  };

  const sentence = ({result, said, ms}) => {
    const reports = said.map(text => ` ${text}${/[.?!]$/.test(text) ? "" : "."}`).join("");
    if (!result) return ["wrong", `The run has failed.${reports}`];
    const {results, wrong, first, got, expected, outside, blocks, threads, switches} = JSON.parse(result);
    const ran = `${count(threads, "thread")} ran in ${count(blocks, "block")}, with ${switches.toLocaleString("en")} switches of stacks, in ${
      ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms here.`;
    if (said.length) return ["wrong", `Wrong: the launch has failed.${reports} ${ran}`];
    if (!wrong && !outside) return ["right", `Right: ${results === 1 ? "the sum is" : `all ${count(results, "element")} are`} as expected. ${ran}`];
    const beyond = "it wrote outside of its array";
    if (!wrong) return ["wrong", `Wrong: ${beyond}. ${ran}`];
    const number = got.includes("nan") ? "NaN, as memory that was not written" : got;
    const which = results === 1 ? "the sum" : `${wrong.toLocaleString("en")} of ${count(results, "element")}, of which the first, number ${first},`;
    return ["wrong", `Wrong: ${outside ? `${beyond}, and ` : ""}${which} is ${number}; expected ${expected}. ${ran}`];
  };

  const start = root => {
    const {kernel, version, sizes, grid, block} = JSON.parse(root.dataset.run);
    const form = make("form", "run-here-form"), id = `run-here-${++numbered}`;
    form.noValidate = true;
    form.setAttribute("aria-label", `Run ${kernel}`);
    const field = ({label, value, most}, index) => {
      const input = make("input");
      Object.assign(input, {type: "text", inputMode: "numeric", value, id: `${id}-${index}`, autocomplete: "off"});
      const named = make("label", "", `${label} `);
      named.htmlFor = input.id;
      named.append(input);
      form.append(named);
      return {label, input, most};
    };
    const ofSizes = sizes.map(field);
    const ofGrid = grid ? [field(grid, "grid")] : [];
    const ofBlock = block.map((one, index) => field(one, `block-${index}`));
    const run = make("button", "", "Run"), stop = make("button", "", "Stop");
    stop.type = "button";
    stop.disabled = true;
    const says = make("p", "run-here-says");
    says.setAttribute("role", "status");
    form.append(run, stop);
    root.querySelector(".run-here-without").remove();
    root.append(form, says);

    let worker = null, runs = 0;
    const say = (className, text) => {
      says.className = `run-here-says ${className}`;
      says.textContent = text;
    };
    const end = () => {
      if (worker) worker.terminate();
      worker = null;
      if (document.activeElement === stop) run.focus();  // a disabled button cannot keep the focus
      stop.disabled = true;
    };
    stop.addEventListener("click", () => {
      end();
      say("", "Stopped.");
    });
    form.addEventListener("submit", async event => {
      event.preventDefault();
      end();
      const mine = ++runs;
      const fault = faultOf([...ofSizes, ...ofGrid, ...ofBlock], ofBlock);
      if (fault) return say("wrong", fault);
      const value = (fields, index, otherwise) => fields[index] ? Number(fields[index].input.value) : otherwise;
      const numbers = [value(ofSizes, 0, 1), value(ofSizes, 1, 1), value(ofSizes, 2, 1), value(ofGrid, 0, 0), value(ofBlock, 0, 1),
                       value(ofBlock, 1, 1), SEED];  // before the reader can change them
      say("", "Runs …");
      try {
        const source = await load(version);
        if (mine !== runs) return;  // Run was pressed again
        worker = new Worker(source);
      } catch (error) {
        if (mine !== runs) return;
        end();
        return say("wrong", `This browser cannot run it: ${error.message}.`);
      }
      stop.disabled = false;
      worker.onmessage = ({data}) => {
        end();
        say(...sentence(data));
      };
      worker.onerror = event => {
        end();
        say("wrong", `The run has failed: ${event.message}.`);
      };
      worker.postMessage({kernel, numbers});
    });
  };

  const startAll = () => document.querySelectorAll(".run-here").forEach(start);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();
