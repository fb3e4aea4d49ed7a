"""Is what a replay shows that which its trace says? Lanes, addresses, banks and sectors of every step, derived from a trace of
docs/traces and nothing of kernels.py or replay.js, and compared with the page in Chromium.

The format of a trace: tools/course/inspect_trace.hpp.
"""
import collections

WORD, SECTOR, BANKS, LANES = 4, 32, 32, 32
# What a lane does at a step that is no access.
DOES = {"collective": "takes part", "arrival": "arrives", "bulk_load": "issues the copy", "bulk_store": "issues the copy"}

MOST_ALIKE = 2  # steps of one place, with the same lanes and as many transactions

# What steps show, each with a lane chosen: [text below the lanes, lanes that are marked, number above each bank, caption,
# {first word of a row, or first byte of a sector: {column: [text, lanes named by the title]}}].
SHOWN = """([number, chosen]) => {
  const box = document.querySelector(`#replay-${number} .replay-box`);
  const put = (input, value) => { input.value = value; input.dispatchEvent(new Event("input")); };
  const on = cells => Object.fromEntries([...cells].map((cell, at) => [at, cell]).filter(([, cell]) => cell.classList.contains("on"))
    .map(([at, cell]) => [at, [cell.textContent, cell.title]]));
  return chosen.map(([at, lane]) => {
    put(box.querySelector("[type=range]"), at + 1);
    put(box.querySelector("[type=number]"), lane);
    const rows = {};
    box.querySelectorAll(".bank-row:not(.heads)").forEach(row => { rows[row.querySelector(".label").textContent] = on(row.querySelectorAll(".cell")); });
    box.querySelectorAll(".sector").forEach(one => { rows[one.querySelector(".label").textContent] = on(one.querySelectorAll(".cell")); });
    return { says: box.querySelector(".replay-lane-says").textContent,
             lanes: Object.keys(on(box.querySelectorAll(".replay-lanes .cell"))).map(Number),
             heads: [...box.querySelectorAll(".heads .head")].map(head => Number(head.textContent)),
             caption: box.querySelector(".replay-caption").textContent,
             rows: Object.fromEntries(Object.entries(rows).filter(([, cells]) => Object.keys(cells).length)) };
  });
}"""


def accesses(trace):
    """For each step its place, and {lane: first byte}; None for a step that is no access."""
    for number, mask, *rest in trace["recorded"]:
        lanes = [lane for lane in range(LANES) if mask & (1 << lane)]
        if not rest:
            yield trace["places"][number], lanes, None
            continue
        offsets, runs = [], rest[2:]
        while runs:
            (first, stride, count), runs = runs[:3], runs[3:]
            offsets += [first + stride * i for i in range(count)]
        yield trace["places"][number], lanes, dict(zip(lanes, offsets, strict=True))


def text_of(lanes):
    return str(lanes[0]) if len(lanes) == 1 else "all" if len(lanes) == LANES else f"{lanes[0]}+"


def expected(place, lanes, first, chosen):
    """What SHOWN has to return for a step, except for captions, of which it is a part."""
    if first is None:
        does = DOES.get(place["kind"], "waits") if chosen in lanes else "takes no part"
        return {"says": f"Lane {chosen} {does}.", "lanes": lanes, "heads": [], "caption": "", "rows": {}}
    size, shared = place["bytes"], place["space"] == "shared"
    of_word, touched = {}, set()
    for lane in lanes:
        span = range(first[lane], first[lane] + size)
        touched.update(span)
        for word in sorted({byte // WORD for byte in span}):
            of_word.setdefault(word, []).append(lane)
    per_row = BANKS if shared else SECTOR // WORD
    rows, heads = {}, [0] * BANKS if shared else []
    for word, of in of_word.items():
        row, column = divmod(word, per_row)
        label = str(row * BANKS) if shared else f"byte {row * SECTOR}"
        rows.setdefault(label, {})[str(column)] = [text_of(of), f"word {word}: lane {', '.join(map(str, of))}"]
        if shared:
            heads[column] += 1
    caption = "" if shared else f" {len(rows)} sector{'s' * (len(rows) != 1)} of 32 bytes, of which the lanes access {len(touched)} of {len(rows) * SECTOR} bytes."
    says = f"Lane {chosen} takes no part."
    if chosen in lanes:
        begin, end = first[chosen], first[chosen] + size - 1
        banks = [begin // WORD % BANKS, end // WORD % BANKS]
        where = f"sector {begin // SECTOR}" if not shared else f"bank {banks[0]}" if banks[0] == banks[1] else f"banks {banks[0]} to {banks[1]}"
        says = f"Lane {chosen}: {f'byte {begin}' if size == 1 else f'bytes {begin} to {end}'} of \"{place['array']}\", {where}."
    return {"says": says, "lanes": lanes, "heads": heads, "caption": caption, "rows": rows}


def to_check(trace):
    """The numbers of the steps, without those that are like others."""
    seen = collections.Counter()
    for at, entry in enumerate(trace["recorded"]):
        alike = tuple(entry[:3])
        seen[alike] += 1
        if seen[alike] <= MOST_ALIKE:
            yield at


def check(browser, path, traces):
    """`traces`: those of the replays of the page, in their order."""
    with browser.page(path) as (page, wrong):
        for number, trace in enumerate(traces, 1):
            steps = list(accesses(trace))
            # Every lane has its turn.
            chosen = [(at, 5 * at % LANES) for at in to_check(trace)]
            for (at, lane), shown in zip(chosen, page.evaluate(SHOWN, [number, chosen]), strict=True):
                place, lanes, first = steps[at]
                wanted = expected(place, lanes, first, lane)
                if (caption := wanted.pop("caption")) not in shown["caption"]:
                    wrong.append(f"{path}, replay {number}, step {at + 1}: the caption is '{shown['caption']}'; expected '{caption.strip()}' in it")
                wrong += [f"{path}, replay {number}, step {at + 1}: {what} is {shown[what]}; expected {value}" for what, value in wanted.items()
                          if shown[what] != value]
        return wrong
