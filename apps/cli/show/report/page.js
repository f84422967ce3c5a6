"use strict";
// The data is one element: a run has its `begin` and `end` lines, and its passes as columns. Whatever changes, all is drawn anew.
const known = value => value !== null && value !== undefined;
const byId = id => document.getElementById(id);
const runs = JSON.parse(byId("data").textContent).map((run, number) => {
  const columns = Object.entries(run.columns);
  const passes = run.columns.pass.map((_, i) => Object.fromEntries(columns.map(([key, column]) => [key, column[i]])));
  passes.forEach((pass, i) => { pass.wall = pass.seconds - (i ? passes[i - 1].seconds : 0); });
  return { ...run, number, passes, visible: true, color: `var(--c${number % 8})`, dash: [null, "7 4", "2 4"][Math.floor(number / 8) % 3] };
});
const stem = run => run.trace.replace(/.*\//, "").replace(/\.(jsonl?|trace)(\.\w+)?$/, "") || run.trace;
for (const run of runs) {
  const [alike, beside] = [stem, other => other.trace].map(name => runs.filter(other => name(other) === name(run)));
  run.name = alike.length === 1 ? stem(run) : run.trace + (beside.length > 1 ? ` (${beside.indexOf(run) + 1})` : "");
}
const state = { x: "seconds", log: true };

// Numbers for people: three or four digits and a unit.
const digits = (value, count = 4) => {
  const size = Math.abs(value);
  if (size > 0 && (size >= 1e9 || size < 1e-6)) return value.toExponential(count - 2).replace(/\.?0*e\+?/, "e");
  const enough = size >= 1 ? Math.max(count, Math.floor(Math.log10(size)) + 1) : count;
  return Number(value.toPrecision(enough)).toLocaleString("en", { maximumFractionDigits: 12 });
};
const exact = value => digits(value, 6);
const percent = value => `${digits(100 * value, 3)}%`;
const accuracy = value => `${(100 * value).toFixed(2)}%`;
const bytes = value => {
  const power = value < 1024 ? 0 : Math.min(4, Math.floor(Math.log(value) / Math.log(1024)));
  return value === 0 ? "0" : `${digits(value / 1024 ** power, 3)} ${["bytes", "KB", "MB", "GB", "TB"][power]}`;
};
const seconds = value => value < 120 ? `${digits(value, 3)} s` : value < 7200 ? `${digits(value / 60, 3)} min` : `${digits(value / 3600, 3)} h`;
const orNone = (format, value) => known(value) ? format(value) : "–";
const sentence = words => `${words[0].toUpperCase()}${words.slice(1)}.`;
const axes = {
  seconds: { title: "seconds of training", tick: value => digits(value, 3) },
  bytes_read: { title: "bytes read", tick: bytes, base: 1024 },
  pass: { title: "passes over the data", tick: value => digits(value), whole: true },
};

// Text goes in as text, so that no name of a file can become markup.
function element(name, attributes = {}, ...children) {
  const drawing = /^(svg|path|line|circle|rect|text)$/.test(name);
  const made = drawing ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (known(value)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// At 1, 2 and 5 times a power of ten; of bytes, at such numbers of a unit.
function ticks({ low, high, log }, { base = 10, whole = false, most }) {
  const found = [];
  const choices = base === 10 ? [[1, 2, 5], [1]] : [[1, 2, 5, 10, 20, 50, 100, 200, 500], [1, 10, 100], [1]];
  for (const choice of log ? choices : []) {
    found.length = 0;
    for (let unit = base ** Math.floor(Math.log(low) / Math.log(base)); unit <= high; unit *= base)
      found.push(...choice.map(factor => factor * unit).filter(value => value >= low * 0.999 && value <= high * 1.001));
    if (found.length <= most) break;
  }
  if (found.length > (log ? 1 : 2)) return found.filter((_, i) => i % Math.ceil(found.length / most) === 0);
  const unit = base === 10 ? 1 : base ** Math.floor(Math.log(Math.max(high, 1)) / Math.log(base));
  const least = (high - low) / unit / most, power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max([1, 2, 5, 10].find(factor => factor * power >= least * 0.999) * power, whole ? 1 : 0) * unit;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, i) => (first + i) * step);
}

function scale({ values, log = false, floor }, from, to) {
  let low = floor ?? Math.min(...values), high = Math.max(...values);
  if (!values.length) [low, high] = [0.1, 1];
  if (log && high < low * 1.001) [low, high] = [low / 2, high * 2];
  if (!log && high - low < 1e-6 * Math.abs(high)) [low, high] = [low * 0.9, high * 1.1];
  const of = log ? Math.log : value => value;
  const at = value => from + (of(value) - of(low)) / (of(high) - of(low) || 1) * (to - from);
  return { low, high, log, at };
}

// What a browser saves as a file.
function save(name, type, text) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  URL.revokeObjectURL(link.href);
}
// A chart alone, with the colors that it has on this page.
function saveDrawing(svg, title) {
  const copy = svg.cloneNode(true), parts = [svg, ...svg.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
  parts.forEach((part, i) => {
    const style = getComputedStyle(part);
    for (const key of ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "paint-order"]) copies[i].style[key] = style[key];
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.style.background = getComputedStyle(svg.parentElement).backgroundColor;
  save(`${title.toLowerCase().replaceAll(" ", "-")}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(copy));
}
const swatch = run => element("svg", { width: 26, height: 10, "aria-hidden": true },
  element("line", { x1: 1, x2: 25, y1: 5, y2: 5, "stroke-width": 3.5, style: `stroke: ${run.color}`, "stroke-dasharray": run.dash }));

// A frame with axes. What stands in it, and the series that can be read off it, come from `fill`.
const waiting = [];  // charts know their width when all of them are on the page
function chart(parent, { title, note = "", large, height = 280, x, y, fill, legend = [] }) {
  const tool = element("button", { title: "Save this chart as SVG" }, "SVG");
  const figure = element("figure", { class: large ? "large" : null }, element("div", { class: "tools" }, tool),
    element("figcaption", {}, title, element("small", {}, note)));
  if (legend.length) figure.append(element("ul", { class: "legend" }, ...legend.map(run => element("li", {}, swatch(run), run.name))));
  tool.addEventListener("click", () => saveDrawing(figure.querySelector("figure > svg"), title));
  parent.append(figure);
  waiting.push(() => {
    const width = Math.max(300, figure.clientWidth - 40), left = 68, right = width - 16, top = 14, bottom = height - 44;
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "group", "aria-roledescription": "chart",
      "aria-label": `${title} against ${x.title}; the arrow keys read its values` });
    const across = scale(x, left, right), up = y.down ? scale(y, top, bottom) : scale(y, bottom, top);
    const rule = (kind, x1, y1, x2, y2) => svg.append(element("line", { class: kind, x1, y1, x2, y2 }));
    const write = (words, at, y, anchor, kind) => svg.append(element("text", { x: at, y, "text-anchor": anchor, class: kind }, words));
    for (const value of ticks(up, { ...y, most: Math.round(height / 45) })) {
      rule("grid", left, up.at(value), right, up.at(value));
      write(y.tick(value), left - 8, up.at(value) + 4, "end");
    }
    for (const value of x.tick ? ticks(across, { ...x, most: Math.round(width / 90) }) : []) {
      rule("grid", across.at(value), top, across.at(value), bottom);
      write(x.tick(value), across.at(value), bottom + 18, "middle");
    }
    rule("axis", left, bottom, right, bottom);
    write(x.title, (left + right) / 2, height - 6, "middle");
    figure.append(svg);
    readable(svg, fill({ svg, across, up, left, right, bottom, write }).filter(({ points }) => points.length));
  });
}

// Points of several series, each {x, y, text}: the nearest to the pointer is shown, or the next one by the arrow keys.
function readable(svg, series) {
  const ring = element("circle", { class: "at", r: 5, visibility: "hidden" }), tip = byId("tip"), at = { line: 0, index: -1 };
  svg.append(ring);
  const hide = () => { ring.setAttribute("visibility", "hidden"); tip.textContent = ""; };
  const show = (line, index) => {
    Object.assign(at, { line, index });
    const { x, y, text } = series[line].points[index], box = svg.getBoundingClientRect(), ratio = box.width / svg.viewBox.baseVal.width;
    for (const [key, value] of Object.entries({ cx: x, cy: y, visibility: "visible" })) ring.setAttribute(key, value);
    ring.style.stroke = series[line].color;
    tip.textContent = text;
    const place = box.left + x * ratio, room = document.documentElement.clientWidth - place - tip.offsetWidth - 20;
    tip.style.left = `${scrollX + Math.max(4, room > 0 ? place + 14 : place - tip.offsetWidth - 14)}px`;
    tip.style.top = `${scrollY + box.top + y * ratio - tip.offsetHeight / 2}px`;
  };
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), ratio = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * ratio, y = (event.clientY - box.top) * ratio;
    let best = 60 ** 2, found = null;
    series.forEach(({ points }, line) => points.forEach((point, index) => {
      const far = (point.x - x) ** 2 + (point.y - y) ** 2;
      if (far < best) [best, found] = [far, [line, index]];
    }));
    if (found) show(...found); else hide();
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", event => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Home: [0, -1e9], End: [0, 1e9] }[event.key];
    if (event.key === "Escape") hide();
    if (!step || !series.length) return;
    event.preventDefault();
    const line = (at.line + step[0] + series.length) % series.length;
    show(line, Math.max(0, Math.min(series[line].points.length - 1, at.index + step[1])));
  });
}

// One curve a visible run; `points` of a run are {x, y, text, dot}; `limit` is a level that it should stay below or reach.
function curves(parent, { x, y, points, limit, limitWords, ...frame }) {
  const drawn = runs.filter(run => run.visible).map(run => ({ run, all: points(run).filter(point => known(point.y) &&
    (!x.log || point.x > 0) && (!y.log || point.y > 0)) })).filter(({ all }) => all.length);
  const levels = new Map(drawn.filter(() => limit).map(({ run }) => [limit(run), run]));
  chart(parent, { ...frame, legend: drawn.map(({ run }) => run), x: { ...x, values: drawn.flatMap(({ all }) => all.map(point => point.x)) },
    y: { ...y, values: drawn.flatMap(({ all }) => all.map(point => point.y)).concat([...levels.keys()].map(level => level * (y.log ? 1 : 1.08))) },
    fill: ({ svg, across, up, left, right, write }) => {
      for (const [level, run] of levels) {
        const own = levels.size > 1 && drawn.filter(other => limit(other.run) === level).length === 1;
        svg.append(element("path", { class: "limit", d: `M${left} ${up.at(level)}H${right}`, style: `stroke: ${own ? run.color : "var(--soft)"}` }));
      }
      const series = drawn.map(({ run, all }) => {
        const placed = all.map(point => ({ ...point, x: across.at(point.x), y: up.at(point.y) }));
        svg.append(element("path", { class: "curve", "data-run": run.number, "stroke-dasharray": run.dash, style: `stroke: ${run.color}`,
          d: placed.map((point, i) => `${i ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("") }));
        for (const point of placed) if (point.dot || placed.length === 1)
          svg.append(element("circle", { cx: point.x, cy: point.y, r: placed.length > 60 ? 2.4 : 4.2, style: `fill: ${run.color}` }));
        return { points: placed, color: run.color };
      });
      for (const level of levels.keys()) write(`${limitWords} ${y.tick(level)}`, left + 6, up.at(level) - 5, "start", "note");
      return series;
    } });
}

// Runs of one problem share an optimum: their objectives are shown by their distance from the best bound on it, or from the best of them.
const problem = ({ begin }) => JSON.stringify([begin.loss, begin.cost, begin.truncate ?? null, begin.inputs, begin.plan.tasks]);
const ends = run => run.end ? [run.end] : [];
const bestOf = new Map();
for (const run of runs) {
  const certified = [...run.passes.filter(pass => pass.certified && run.begin.plan.tasks === 1), ...ends(run)];
  const bounds = known(run.begin.truncate) ? [] : certified.map(at => at.dual).filter(value => known(value) && value > 0);
  const reached = [...run.passes.map(pass => objective(run, pass)), ...ends(run).map(end => end.truncated?.objective ?? end.primal)].filter(known);
  const best = bestOf.get(problem(run)) ?? { bound: -Infinity, reached: Infinity };
  bestOf.set(problem(run), { bound: Math.max(best.bound, ...bounds), reached: Math.min(best.reached, ...reached) });
}
function distance(run, value) {
  const { bound, reached } = bestOf.get(problem(run)), best = bound > 0 ? Math.min(bound, reached) : reached;
  return known(value) && best > 0 && best < Infinity ? (value - best) / best : null;
}

// That of a truncated loss is known where outliers were looked for; `primal` is that of a convex problem. The certificate of a pass is that of one task.
function objective(run, pass) {
  return known(run.begin.truncate) ? pass.objective : pass.certified && run.begin.plan.tasks > 1 ? null : pass.primal;
}
const describe = (run, pass) => [run.name, `pass ${pass.pass}${pass.certified ? ", certified" : ""}`, `gap ${orNone(percent, pass.gap)}`,
  `objective ${orNone(exact, objective(run, pass))}`, known(pass.test_accuracy) ? `test accuracy ${accuracy(pass.test_accuracy)}` : null,
  `${seconds(pass.seconds)}, ${bytes(pass.bytes_read)} read`].filter(known).join("\n");

// `last`: of the end of a run, whose certificate belongs to no pass. `most`: what is above is drawn at the border.
function progress(parent, { value, last, most = Infinity, dots, tick, log, down, ...frame }) {
  if (!runs.some(run => run.passes.some(pass => known(value(run, pass))))) return;
  const atEnd = run => {
    const { end, passes } = run, at = passes.at(-1), reached = end && last ? last(run, end) : null;
    if (!known(reached) || !known(end.certified_gap) || !at || at.certified) return [];
    const text = [run.name, "at the end, certified", `gap ${orNone(percent, end.certified_gap)}`, `objective ${orNone(exact, end.truncated?.objective ?? end.primal)}`];
    return [{ x: state.x === "pass" ? at.pass : Math.max(at[state.x], run.resumed ? 0 : end[state.x] ?? 0), y: reached, text: text.join("\n"), dot: true }];
  };
  curves(parent, { ...frame, x: { ...axes[state.x], log: state.log, floor: state.log ? undefined : 0 }, y: { tick, log, down },
    points: run => [...run.passes.map(pass => ({ x: pass[state.x], y: value(run, pass), text: describe(run, pass), dot: dots && pass.certified })), ...atEnd(run)]
      .map(point => known(point.y) ? { ...point, y: Math.min(point.y, most) } : point) });
}

const kinds = { solve: "solving", wait: "waiting for rows", certify: "certifying", other: "other", read: "reading", decode: "decoding" };
const stacks = [["solve", "wait", "certify", "other"], ["read", "decode"]];
function bars(parent, run) {
  const size = Math.ceil(run.passes.length / 60), groups = [];  // more bars than 60 cannot be told apart: means then
  for (let i = 0; i < run.passes.length; i += size) {
    const part = run.passes.slice(i, i + size), sum = key => part.reduce((total, pass) => total + pass[key], 0), count = sum("passes");
    const group = Object.fromEntries(Object.keys(kinds).map(kind => [kind, (sum(`${kind}_seconds`) || 0) / count]));
    group.other = Math.max(0, sum("wall") / count - group.solve - group.wait - group.certify);
    groups.push({ ...group, last: part.at(-1).pass, name: count > 1 ? `the mean of ${count} passes up to ${part.at(-1).pass}` : `pass ${part[0].pass}` });
  }
  const height = (group, stack) => stack.reduce((total, kind) => total + group[kind], 0);
  chart(parent, { title: run.name, note: size > 1 ? "seconds per pass, several passes per bar" : "seconds per pass", height: 260,
    x: { title: "pass", values: [0, groups.length] }, y: { tick: value => digits(value, 3), floor: 0,
      values: groups.flatMap(group => stacks.map(stack => height(group, stack) * 1.05)) },
    fill: ({ svg, across, up, bottom, write }) => {
      const room = across.at(1) - across.at(0), wide = Math.min(54, room * 0.52), every = Math.ceil(44 / room);
      return [{ color: "var(--ink)", points: groups.map((group, i) => {
        const x = across.at(i + 0.5) - wide * 0.72;
        stacks.forEach((stack, side) => stack.forEach((kind, above) => {
          const [to, from] = [above + 1, above].map(count => up.at(height(group, stack.slice(0, count))));
          if (group[kind] > 0) svg.append(element("rect", { "data-kind": kind, x: x + side * wide * 1.06, y: to, width: wide * (side ? 0.4 : 1),
            height: from - to, style: `fill: var(--${kind})` }));
        }));
        if (i % every === 0) write(digits(group.last), across.at(i + 0.5), bottom + 18, "middle");
        return { x: x + wide / 2, y: up.at(height(group, stacks[0])),
          text: [group.name, ...Object.entries(kinds).map(([kind, words]) => `${words} ${seconds(group[kind])}`)].join("\n") };
      }) }];
    } });
}

// What a run came to: its end; or, where it has not ended, its last certificate or pass.
function result(run) {
  const last = run.passes.at(-1) ?? {}, best = run.passes.findLast(pass => pass.certified) ?? last;
  const held = Math.max(...run.memory.map(point => point[1]));
  const end = run.end ? { ...run.end, gap: run.end.certified_gap }
    : { ...last, ...Object.fromEntries(["primal", "dual", "gap"].map(key => [key, best[key]])), passes: last.pass, peak_memory_bytes: run.memory.length ? held : null };
  const gap = known(end.gap) ? `gap ${percent(Math.max(0, end.gap))}` : run.end ? "its method computes no bound" : "no bound is known yet";
  const words = run.end ? `${end.converged ? "converged" : "not converged"}: ${gap} (tolerance ${percent(run.begin.tolerance)})`
    : !known(end.gap) ? gap : best.certified ? `${gap}, certified at pass ${best.pass}` : `estimated ${gap}`;
  const whole = run.resumed && run.passes.length ? { seconds: last.seconds, bytes_read: last.bytes_read } : {};  // an end tells of its own part
  return { ...end, ...whole, words: run.end ? words : `not ended: ${run.passes.length ? words : "no pass is complete"}`,
    verdict: run.end ? end.converged ? "converged" : "not converged" : "not ended", objective: end.truncated?.objective ?? end.primal };
}

const table = (head, rows) => element("table", {}, element("thead", {}, element("tr", {}, ...head.map(words => element("th", { scope: "col" }, words)))),
  element("tbody", {}, ...rows));

function summary() {
  const columns = { run: null, method: ({ run }) => `${run.begin.solver}, ${run.begin.loss}`, result: got => got.verdict, gap: got => orNone(percent, got.gap),
    objective: got => orNone(exact, got.objective), "test accuracy": got => orNone(accuracy, got.test_accuracy), passes: got => orNone(digits, got.passes),
    time: got => orNone(seconds, got.seconds), read: got => orNone(bytes, got.bytes_read),
    "peak memory": got => `${orNone(bytes, got.peak_memory_bytes)} of ${bytes(got.run.begin.memory_bytes)}` };
  const results = runs.map(run => ({ ...result(run), run }));
  for (const [key, format] of Object.entries(columns)) if (format && results.every(got => format(got) === "–")) delete columns[key];
  return table(Object.keys(columns), results.map(({ run, ...got }) => {
    const button = element("button", { class: "run", "data-run": run.number, "aria-pressed": true }, swatch(run), run.name);
    button.addEventListener("click", () => {
      run.visible = !run.visible;
      button.setAttribute("aria-pressed", run.visible);
      draw();
    });
    const cells = Object.entries(columns).slice(1).map(([name, format]) => element("td", { "data-label": name }, format({ run, ...got })));
    return element("tr", {}, element("th", { scope: "row" }, button), ...cells);
  }));
}

function numbers(run) {
  const columns = { pass: digits, seconds, bytes_read: bytes, primal: exact, dual: exact, gap: percent, certified: value => value ? "yes" : "",
    test_accuracy: accuracy, resident_bytes: bytes };
  const rows = run.passes.map(pass => element("tr", {}, ...Object.entries(columns).map(([key, format]) => element("td", {}, orNone(format, pass[key])))));
  return element("div", { class: "wide", tabindex: 0 }, table(Object.keys(columns).map(key => key.replace("_", " ")), rows));
}

// What each thread did; the first is the one that leads, and also does what is not shared.
function threadWords(end) {
  if (!end?.threads?.length || !known(end.processor_seconds)) return null;
  const each = end.threads.map((thread, i) => `thread ${i + 1}: ${seconds(thread.shared_work_seconds)} of shared work, ${seconds(thread.reading_seconds)} of reading`);
  return `${seconds(end.processor_seconds)} of processor time in ${seconds(end.seconds)}; ${each.join("; ")}`;
}

const quoted = word => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
function inFull(run) {
  const got = result(run), { begin } = run, cut = got.truncated;
  const facts = { command: begin.command && element("code", {}, ...begin.command.flatMap(word => [element("span", {}, quoted(word)), " "])), plan: begin.plan.words,
    certificate: `primal ${orNone(exact, got.primal)}, dual ${orNone(exact, got.dual)}, gap ${orNone(percent, got.gap)} (tolerance ${percent(begin.tolerance)})`,
    "truncated loss": cut && `objective ${exact(cut.objective)}, ${digits(cut.outliers)} outliers, ${digits(cut.outer_steps)} steps; ` +
      "the certificate is that of the last convex problem",
    "support vectors": known(got.support_vectors) && digits(got.support_vectors),
    settings: [`loss ${begin.loss}`, known(begin.truncate) && `truncated at 1 + ${digits(begin.truncate)}`, `cost ${digits(begin.cost)}`,
      `solver ${begin.solver}`, `seed ${begin.seed}`, `memory ${bytes(begin.memory_bytes)}`].filter(Boolean).join(", "),
    groups: run.groups > 1 && `${run.groups}, one after another, because the memory does not hold all classes; gap and objective are those of one group at a time`,
    threads: threadWords(run.end),
    data: begin.inputs.join(", "), trace: run.trace,
    resumed: run.resumed && `${run.resumed === 1 ? "once" : `${run.resumed} times`}, from a checkpoint; seconds and bytes are added up` };
  const more = element("details", {}, element("summary", {}, `Figures per pass (${run.passes.length < run.pass_lines ? `${digits(run.passes.length)} of ` : ""}` +
    `${digits(run.pass_lines)})`));
  more.addEventListener("toggle", () => { if (more.children.length === 1) more.append(numbers(run)); });
  return element("div", { class: "card", style: `border-left-color: ${run.color}` }, element("h3", {}, run.name), element("p", {}, sentence(got.words)),
    element("dl", {}, ...Object.entries(facts).filter(fact => fact[1]).flatMap(([key, words]) => [element("dt", {}, key), element("dd", {}, words)])), more);
}

function draw() {
  byId("tip").textContent = "";
  const [lines, time, memory] = ["progress", "time", "memory"].map(byId);
  for (const part of [lines, time, memory]) part.replaceChildren();
  progress(lines, { title: "Gap", note: "relative duality gap; dots are certified, lines are estimates", large: true, height: 380, dots: true,
    value: (run, pass) => pass.gap, last: (run, end) => end.certified_gap, tick: percent, log: true, limit: run => run.begin.tolerance, limitWords: "tolerance" });
  const faultless = runs.some(run => run.passes.some(pass => pass.test_accuracy === 1));  // its error has no logarithm
  // A first pass that is far off must not hide what good runs differ in.
  const errors = runs.map(run => run.passes.filter(pass => known(pass.test_accuracy)).at(-1)).filter(known).map(pass => 1 - pass.test_accuracy);
  progress(lines, { title: "Test accuracy", note: faultless ? "" : "on a logarithmic scale of the error; lower ones at the border", down: true, log: !faultless,
    most: errors.length ? 2 * Math.max(...errors) : undefined,
    value: (run, pass) => known(pass.test_accuracy) ? 1 - pass.test_accuracy : null, tick: error => `${digits(100 * (1 - error))}%` });
  progress(lines, { title: "Objective", note: "how far above the best bound on the optimum; lines are estimates", dots: true, tick: percent, log: true,
    value: (run, pass) => distance(run, objective(run, pass)), last: (run, end) => distance(run, end.truncated?.objective ?? end.primal) });
  for (const run of runs) if (run.visible && run.passes.length) bars(time, run);
  const held = runs.filter(run => run.visible).flatMap(run => [...run.memory.map(point => point[1]), run.begin.memory_bytes]);
  const far = Math.max(...held) > 40 * Math.min(...held);
  curves(memory, { title: "Memory held", large: true, x: { ...axes.seconds, floor: 0 }, y: { tick: bytes, base: 1024, floor: far ? undefined : 0, log: far },
    limit: run => run.begin.memory_bytes, limitWords: "memory limit",
    points: run => run.memory.map(([x, y]) => ({ x, y, text: `${run.name}\n${bytes(y)} of ${bytes(run.begin.memory_bytes)}\nafter ${seconds(x)}` })) });
  for (const work of waiting.splice(0)) work();
}

const [first] = runs, sets = [...new Set(runs.flatMap(run => run.begin.inputs.map(input => input.replace(/.*\//, ""))))];
const converged = runs.filter(run => run.end?.converged).length;
byId("title").textContent = runs.length === 1 ? first.name : `${runs.length} runs${sets.length === 1 ? ` on ${sets[0]}` : ""}`;
const few = (words, most) => words.slice(0, most).join(", ") + (words.length > most ? ", …" : "");
byId("lead").textContent = runs.length === 1 ? `${first.begin.solver}, ${first.begin.loss}, on ${few(sets, 3)}: ${result(first).words}.`
  : `${converged} of ${runs.length} runs converged.`;
document.title = `linblock report: ${few(runs.map(run => run.name), 4)}`;
byId("runs").append(summary());
byId("csv").addEventListener("click", () => {
  const columns = ["pass", "seconds", "bytes_read", "primal", "dual", "gap", "certified", "test_accuracy", "resident_bytes"];
  const cell = value => known(value) ? /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value) : "";
  const lines = runs.flatMap(run => run.passes.map(pass => [run.name, ...columns.map(key => pass[key])].map(cell).join(",")));
  save("passes.csv", "text/csv", [["run", ...columns].join(","), ...lines, ""].join("\n"));
});
byId("time-key").append(...Object.entries(kinds).map(([kind, words]) => element("li", {}, element("i", { style: `background: var(--${kind})` }), words)));
byId("full").append(...runs.map(inFull));
for (const button of document.querySelectorAll("[data-x], [data-log]")) button.addEventListener("click", () => {
  Object.assign(state, button.dataset.x ? { x: button.dataset.x } : { log: Boolean(button.dataset.log) });
  for (const other of button.parentElement.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
  draw();
});
let drawn = innerWidth;
addEventListener("resize", () => { if (innerWidth !== drawn) { drawn = innerWidth; draw(); } });
draw();
