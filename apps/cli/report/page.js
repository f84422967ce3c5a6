"use strict";
// The data is one element: a run has its `begin` and `end` lines, and passes as columns. Everything is drawn again when something changes.
const colours = 8, dashes = ["", "7 4", "2 4"];
const runs = JSON.parse(document.getElementById("data").textContent).map((run, number) => {
  const passes = run.columns.pass.map((_, i) => Object.fromEntries(Object.entries(run.columns).map(([key, column]) => [key, column[i]])));
  passes.forEach((pass, i) => { pass.wall = pass.seconds - (i ? passes[i - 1].seconds : 0); });
  return { ...run, number, passes, visible: true, colour: `var(--c${number % colours})`, dash: dashes[Math.floor(number / colours) % dashes.length] };
});
const stem = run => run.trace.replace(/.*\//, "").replace(/\.(jsonl?|trace)(\.\w+)?$/, "") || run.trace;
for (const run of runs) {
  const same = runs.filter(other => stem(other) === stem(run));
  const sameTrace = runs.filter(other => other.trace === run.trace);
  run.name = same.length === 1 ? stem(run) : run.trace + (sameTrace.length > 1 ? ` (${sameTrace.indexOf(run) + 1})` : "");
}
const state = { x: "seconds", log: true };

// Numbers for people: three or four digits and a unit.
const digits = (value, count = 4) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) return value.toExponential(count - 2).replace(/\.?0*e\+?/, "e");
  return Number(value.toPrecision(Math.max(count, size >= 1 ? Math.floor(Math.log10(size)) + 1 : 0))).toLocaleString("en", { maximumFractionDigits: 12 });
};
const known = value => value !== null && value !== undefined;
const orNone = format => value => known(value) ? format(value) : "–";
const percent = value => digits(100 * value, 3) + "%";
const accuracy = value => (100 * value).toFixed(2) + "%";
const units = ["bytes", "KB", "MB", "GB", "TB"];
const bytes = value => {
  const power = value < 1 ? 0 : Math.min(4, Math.floor(Math.log(value) / Math.log(1024)));
  return `${digits(value / 1024 ** power, 3)} ${units[power]}`;
};
const seconds = value => value < 120 ? `${digits(value, 3)} s` : value < 7200 ? `${digits(value / 60, 3)} min` : `${digits(value / 3600, 3)} h`;
const axes = {
  seconds: { title: "seconds of training", format: seconds, tick: value => digits(value, 3) },
  bytes_read: { title: "bytes read", format: bytes, tick: bytes, base: 1024 },
  pass: { title: "passes over the data", format: value => `pass ${digits(value)}`, tick: value => digits(value), whole: true },
};

// Elements. Text goes in as text, so no file name can become markup.
function element(name, attributes = {}, ...children) {
  const made = /^(svg|g|path|line|circle|rect|text|title)$/.test(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (known(value)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const byId = id => document.getElementById(id);
const swatch = run => element("svg", { width: 26, height: 10, "aria-hidden": "true" },
  element("line", { x1: 1, x2: 25, y1: 5, y2: 5, "stroke-width": 3.5, style: `stroke: ${run.colour}`, "stroke-dasharray": run.dash || null }));

// Ticks at 1, 2 and 5 times a power; of two bases where the unit is bytes.
function ticks(low, high, log, { base = 10, whole = false, most = 7 } = {}) {
  const found = [];
  if (!log) {
    const unit = base === 10 ? 1 : base ** Math.floor(Math.log(Math.max(high, 1)) / Math.log(base));
    const span = (high - low) / unit / most, power = 10 ** Math.floor(Math.log10(span));
    const step = Math.max([1, 2, 5, 10].find(factor => factor * power >= span * 0.999) * power, whole ? 1 : 0) * unit;
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); ++i) found.push(i * step);
    return found;
  }
  const mantissas = base === 10 ? [[1, 2, 5], [1]] : [[1, 2, 5, 10, 20, 50, 100, 200, 500], [1, 10, 100], [1]];
  for (const choice of mantissas) {
    found.length = 0;
    for (let k = Math.floor(Math.log(low) / Math.log(base)); base ** k <= high; ++k)
      for (const factor of choice) if (factor * base ** k >= low * 0.999 && factor * base ** k <= high * 1.001) found.push(factor * base ** k);
    if (found.length <= most) return found;
  }
  return found.filter((_, i) => i % Math.ceil(found.length / most) === 0);
}

function scale(values, log, from, to, floor = null) {
  let low = floor ?? Math.min(...values), high = Math.max(...values);
  if (log ? high < low * 1.2 : high - low < 1e-12 * Math.abs(high)) [low, high] = log ? [low / 2, high * 2] : [low - Math.abs(low) / 10 - 1e-9, high + Math.abs(high) / 10 + 1e-9];
  const of = log ? Math.log : value => value;
  const at = value => from + (of(value) - of(low)) / (of(high) - of(low)) * (to - from);
  return { low, high, log, at };
}

// A frame with axes; what is drawn into it, and the points that can be read off it, come from `fill`.
function chart(parent, { title, note = "", height, x, y, large = false, label, fill }) {
  const figure = element("figure", large ? { class: "large" } : {}, element("figcaption", {}, title, element("small", {}, note)));
  parent.append(figure);
  const width = Math.max(320, figure.clientWidth - 40), left = 68, right = width - 16, top = 10, bottom = height - 44;
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "group", "aria-roledescription": "chart", "aria-label": label });
  const across = x.make(left, right), up = y.make(bottom, top);
  for (const value of ticks(up.low, up.high, up.log, { base: y.base, most: Math.round(height / 45) })) {
    svg.append(element("line", { class: "grid", x1: left, x2: right, y1: up.at(value), y2: up.at(value) }));
    svg.append(element("text", { x: left - 8, y: up.at(value) + 4, "text-anchor": "end" }, y.tick(value)));
  }
  if (x.tick) for (const value of ticks(across.low, across.high, across.log, { base: x.base, whole: x.whole, most: Math.round(width / 90) })) {
    svg.append(element("line", { class: "grid", x1: across.at(value), x2: across.at(value), y1: top, y2: bottom }));
    svg.append(element("text", { x: across.at(value), y: bottom + 18, "text-anchor": "middle" }, x.tick(value)));
  }
  svg.append(element("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  svg.append(element("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, x.title));
  figure.append(svg);
  readable(svg, fill(svg, across, up, { left, right, top, bottom }));
}

// Points of several series, each {x, y, text}: the nearest to the pointer is shown, or the next one by the arrow keys.
function readable(svg, series) {
  const ring = element("circle", { class: "at", r: 5, visibility: "hidden" }), tip = byId("tip");
  svg.append(ring);
  const hide = () => { ring.setAttribute("visibility", "hidden"); tip.hidden = true; };
  const show = (line, index) => {
    Object.assign(at, { line, index });
    const point = series[line].points[index], box = svg.getBoundingClientRect(), ratio = box.width / svg.viewBox.baseVal.width;
    for (const [key, value] of [["cx", point.x], ["cy", point.y], ["visibility", "visible"]]) ring.setAttribute(key, value);
    ring.style.stroke = series[line].colour;
    tip.textContent = point.text;
    tip.hidden = false;
    const x = box.left + point.x * ratio, beside = x + tip.offsetWidth + 20 > document.documentElement.clientWidth ? x - tip.offsetWidth - 14 : x + 14;
    tip.style.left = `${Math.max(4, beside) + scrollX}px`;
    tip.style.top = `${box.top + point.y * ratio + scrollY - tip.offsetHeight / 2}px`;
  };
  const at = { line: 0, index: -1 };
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), ratio = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * ratio, y = (event.clientY - box.top) * ratio;
    let best = 60 ** 2, found = null;
    series.forEach(({ points }, line) => points.forEach((point, index) => {
      const far = (point.x - x) ** 2 + (point.y - y) ** 2;
      if (far < best) { best = far; found = [line, index]; }
    }));
    if (found) show(...found); else hide();
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", event => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Home: [0, -Infinity], End: [0, Infinity], Escape: null }[event.key];
    if (step === undefined || !series.length) return;
    event.preventDefault();
    if (step === null) return hide();
    const line = (at.line + step[0] + series.length) % series.length;
    show(line, Math.max(0, Math.min(series[line].points.length - 1, at.index + step[1])));
  });
}

const describe = (run, pass) => [run.name, `pass ${pass.pass}${pass.certified ? ", certified" : ""}`, `gap ${orNone(percent)(pass.gap)}`,
  `objective ${orNone(digits)(objective(run, pass))}`, ...(known(pass.test_accuracy) ? [`test accuracy ${accuracy(pass.test_accuracy)}`] : []),
  `${seconds(pass.seconds)}, ${bytes(pass.bytes_read)} read`].join("\n");
// That of a truncated loss is known where outliers were looked for; elsewhere `primal` is that of a convex part.
const objective = (run, pass) => known(run.begin.truncate) ? pass.objective : pass.primal;

function curves(parent, { title, note, value, tick, log, large, height, limits = () => [] }) {
  const positive = number => known(number) && (!log || number > 0);
  const usable = run => run.passes.filter(pass => positive(value(run, pass)) && (!state.log || pass[state.x] > 0));
  const shown = runs.filter(run => run.visible && usable(run).length);
  if (!runs.some(run => run.passes.some(pass => positive(value(run, pass))))) return;
  const all = shown.flatMap(run => usable(run).map(pass => pass[state.x]));
  const heights = shown.flatMap(run => usable(run).map(pass => value(run, pass)).concat(limits(run)));
  const axis = axes[state.x];
  chart(parent, {
    title, note, large, height, label: `${title} against ${axis.title}. Arrow keys read the values.`,
    x: { ...axis, make: (from, to) => scale(all.length ? all : [1, 10], state.log, from, to, state.log ? null : 0) },
    y: { tick, make: (from, to) => scale(heights.length ? heights : [0.1, 1], log, from, to) },
    fill: (svg, across, up, { left, right }) => {
      const levels = new Map(shown.flatMap(run => limits(run).map(level => [level, run])));
      for (const [level, run] of levels) {
        svg.append(element("path", { class: "limit", d: `M${left} ${up.at(level)}H${right}`, style: `stroke: ${levels.size > 1 ? run.colour : "var(--soft)"}` }));
        svg.append(element("text", { class: "note", x: left + 6, y: up.at(level) - 5 }, `wanted: ${tick(level)}`));
      }
      return shown.map(run => {
        const points = usable(run).map(pass => ({ x: across.at(pass[state.x]), y: up.at(value(run, pass)), text: describe(run, pass), pass }));
        svg.append(element("path", { class: "curve", "data-run": run.number, "stroke-dasharray": run.dash || null, style: `stroke: ${run.colour}`,
          d: points.map(({ x, y }, i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") }));
        for (const { x, y, pass } of points) if (pass.certified || points.length === 1)
          svg.append(element("circle", { cx: x, cy: y, r: 4, style: `fill: ${run.colour}` }));
        return { points, colour: run.colour };
      });
    },
  });
}

const kinds = [["solve", "solving"], ["wait", "waiting for rows"], ["certify", "certifying"], ["other", "the rest"], ["read", "reading"], ["decode", "decoding"]];
function bars(parent, run) {
  // At most 60 bars: more passes are added up, and the mean of one is shown.
  const size = Math.ceil(run.passes.length / 60), groups = [];
  for (let i = 0; i < run.passes.length; i += size) {
    const part = run.passes.slice(i, i + size), sum = key => part.reduce((total, pass) => total + pass[key], 0), count = sum("passes");
    const group = Object.fromEntries(kinds.map(([kind]) => [kind, kind === "other" ? 0 : sum(kind + "_seconds") / count]));
    group.other = Math.max(0, sum("wall") / count - group.solve - group.wait - group.certify);
    group.name = part.length > 1 || count > 1 ? `passes to ${part.at(-1).pass}, mean of ${count}` : `pass ${part[0].pass}`;
    group.last = part.at(-1).pass;
    groups.push(group);
  }
  const stacks = group => [["solve", "wait", "certify", "other"], ["read", "decode"]].map(stack => stack.map(kind => [kind, group[kind]]));
  const highest = Math.max(1e-9, ...groups.flatMap(group => stacks(group).map(stack => stack.reduce((total, [, value]) => total + value, 0))));
  chart(parent, {
    title: run.name, note: size > 1 ? "seconds a pass, several passes a bar" : "seconds a pass", height: 260, label: `Where the time of ${run.name} went, by pass. Arrow keys read the values.`,
    x: { title: "pass", make: (from, to) => scale([0, groups.length], false, from, to) },
    y: { tick: value => digits(value, 3), make: (from, to) => scale([0, highest * 1.05], false, from, to) },
    fill: (svg, across, up, { bottom }) => {
      const wide = across.at(1) - across.at(0), every = Math.ceil(groups.length / Math.floor((across.at(groups.length) - across.at(0)) / 44));
      const points = groups.map((group, i) => {
        stacks(group).forEach((stack, side) => {
          let level = 0;
          for (const [kind, value] of stack) {
            const from = up.at(level), to = up.at(level += value);
            if (value > 0) svg.append(element("rect", { class: "bar", "data-kind": kind, x: across.at(i) + wide * (side ? 0.62 : 0.12), y: to,
              width: Math.min(60, wide * (side ? 0.2 : 0.48)), height: Math.max(0, from - to), style: `fill: var(--${kind})` }));
          }
        });
        if (i % every === 0) svg.append(element("text", { x: across.at(i + 0.45), y: bottom + 18, "text-anchor": "middle" }, digits(group.last)));
        const top = stacks(group)[0].reduce((total, [, value]) => total + value, 0);
        return { x: across.at(i + 0.36), y: up.at(top), text: [group.name, ...kinds.map(([kind, words]) => `${words} ${seconds(group[kind])}`)].join("\n") };
      });
      return points.length ? [{ points, colour: "var(--ink)" }] : [];
    },
  });
}

function memoryChart(parent) {
  const shown = runs.filter(run => run.visible && run.memory.length);
  if (!shown.length) return;
  const budget = run => run.begin.memory_bytes;
  const high = Math.max(...shown.flatMap(run => run.memory.map(([, held]) => held)), ...shown.map(budget)) * 1.08;
  chart(parent, {
    title: "Memory held", large: true, height: 280, label: "Memory held against seconds of training. Arrow keys read the values.",
    x: { ...axes.seconds, make: (from, to) => scale(shown.flatMap(run => run.memory.map(([when]) => when)), false, from, to, 0) },
    y: { tick: bytes, base: 1024, make: (from, to) => scale([0, high], false, from, to) },
    fill: (svg, across, up, { left, right }) => {
      const levels = new Map(shown.map(run => [budget(run), run]));
      for (const [level, run] of levels) {
        svg.append(element("path", { class: "limit", d: `M${left} ${up.at(level)}H${right}`, style: `stroke: ${levels.size > 1 ? run.colour : "var(--soft)"}` }));
        svg.append(element("text", { class: "note", x: right - 4, y: up.at(level) - 5, "text-anchor": "end" }, `allowed: ${bytes(level)}`));
      }
      return shown.map(run => {
        const points = run.memory.map(([when, held]) => ({ x: across.at(when), y: up.at(held),
          text: `${run.name}\n${bytes(held)} of ${bytes(budget(run))}\nafter ${seconds(when)}` }));
        svg.append(element("path", { class: "curve", "data-run": run.number, "stroke-dasharray": run.dash || null, style: `stroke: ${run.colour}`,
          d: points.map(({ x, y }, i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") }));
        return { points, colour: run.colour };
      });
    },
  });
}

// What a run came to: its end, or the last pass of one that has not ended.
function result(run) {
  const last = run.passes.at(-1), certificate = run.passes.filter(pass => pass.certified).at(-1);
  const end = run.end ?? { passes: last?.pass, seconds: last?.seconds, bytes_read: last?.bytes_read, test_accuracy: last?.test_accuracy,
    peak_memory_bytes: run.memory.length ? Math.max(...run.memory.map(([, held]) => held)) : null,
    certified: Boolean(certificate), primal: (certificate ?? last)?.primal, dual: (certificate ?? last)?.dual, gap: (certificate ?? last)?.gap };
  const bound = known(end.gap) ? `within ${percent(Math.max(0, end.gap))} of the best possible objective` : "";
  const words = end.certified ? `certified ${bound}${run.end ? "" : `, at pass ${certificate.pass}`}` : bound ? `not certified; estimated ${bound}` : "not certified: this method gives no bound";
  return { ...end, words: run.end ? words : `not ended: ${last ? words : "no pass was completed"}`,
    objective: end.truncated ? end.truncated.objective : end.primal };
}

const quoted = word => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
const table = (head, rows) => [element("thead", {}, element("tr", {}, ...head.map(words => element("th", { scope: "col" }, words)))), element("tbody", {}, ...rows)];

function summaryTable() {
  const rows = runs.map(run => {
    const got = result(run);
    run.button = element("button", { class: "run", "data-run": run.number, "aria-pressed": "true" }, swatch(run), run.name);
    run.button.addEventListener("click", () => { run.visible = !run.visible; run.button.setAttribute("aria-pressed", run.visible); draw(); });
    return element("tr", {}, element("th", { scope: "row" }, run.button), element("td", { class: "words" }, `${run.begin.solver}, ${run.begin.loss}`),
      ...[run.end ? (got.certified ? "certified" : "not certified") : "not ended", orNone(percent)(got.gap), orNone(digits)(got.objective), orNone(accuracy)(got.test_accuracy),
        orNone(digits)(got.passes), orNone(seconds)(got.seconds), orNone(bytes)(got.bytes_read), `${orNone(bytes)(got.peak_memory_bytes)} of ${bytes(run.begin.memory_bytes)}`]
        .map((words, i) => element("td", i ? {} : { class: "words" }, words)));
  });
  byId("runs").append(...table(["run", "method", "result", "gap", "objective", "test accuracy", "passes", "time", "read", "peak memory"], rows));
}

function fullRun(run) {
  const got = result(run), { begin } = run;
  const facts = [["command", begin.command && element("code", {}, begin.command.map(quoted).join(" "))],
    ["plan", begin.plan.words],
    ["certificate", `primal ${orNone(value => digits(value, 6))(got.primal)}, dual ${orNone(value => digits(value, 6))(got.dual)}, gap ${orNone(percent)(got.gap)}, ${got.certified ? "certified" : "not certified"}; wanted ${percent(begin.tolerance)}`],
    ["truncated loss", got.truncated && `objective ${digits(got.truncated.objective, 6)}, ${digits(got.truncated.outliers)} outliers, ${digits(got.truncated.outer_steps)} convex problems; the certificate is that of the last one`],
    ["support vectors", known(got.support_vectors) ? digits(got.support_vectors) : null],
    ["settings", [`loss ${begin.loss}`, `cost ${digits(begin.cost)}`, known(begin.truncate) && `truncated at 1 + ${digits(begin.truncate)}`, `solver ${begin.solver}`, `seed ${begin.seed}`,
      `memory ${bytes(begin.memory_bytes)}`].filter(Boolean).join(", ")],
    ["data", begin.inputs.join(", ")],
    ["trace", run.trace + (run.resumed ? `; went on from a checkpoint ${run.resumed === 1 ? "once" : run.resumed + " times"}, times are added up` : "")]];
  const numbers = element("details", {}, element("summary", {}, `The numbers of ${run.passes.length < run.pass_lines ? `${digits(run.passes.length)} of ${digits(run.pass_lines)}` : digits(run.passes.length)} passes`));
  numbers.addEventListener("toggle", () => {
    if (numbers.children.length > 1) return;
    const columns = [["pass", digits], ["seconds", seconds], ["bytes_read", bytes], ["primal", value => digits(value, 6)], ["dual", value => digits(value, 6)], ["gap", percent],
      ["certified", value => value ? "yes" : ""], ["test_accuracy", accuracy], ["resident_bytes", bytes]];
    numbers.append(element("div", { class: "wide", tabindex: 0 }, element("table", {}, ...table(columns.map(([key]) => key.replace("_", " ")),
      run.passes.map(pass => element("tr", {}, ...columns.map(([key, format]) => element("td", {}, orNone(format)(pass[key])))))))));
  });
  return element("div", { class: "card", style: `border-left-color: ${run.colour}` }, element("h3", {}, run.name), element("p", { class: "words" }, got.words[0].toUpperCase() + got.words.slice(1) + "."),
    element("dl", {}, ...facts.filter(([, words]) => words).flatMap(([key, words]) => [element("dt", {}, key), element("dd", {}, words)])), numbers);
}

function draw() {
  byId("tip").hidden = true;
  const [progress, time, memory] = ["progress", "time", "memory"].map(byId);
  for (const part of [progress, time, memory]) part.replaceChildren();
  curves(progress, { title: "Gap", note: "relative duality gap; dots are certified, the rest is estimated", value: (run, pass) => pass.gap, tick: percent, log: true, large: true,
    height: 380, limits: run => [run.begin.tolerance] });
  curves(progress, { title: "Test accuracy", value: (run, pass) => pass.test_accuracy, tick: percent, log: false, height: 280 });
  curves(progress, { title: "Objective", note: "estimates, except where certified", value: objective, tick: value => digits(value), log: true, height: 280 });
  for (const run of runs) if (run.visible && run.passes.length) bars(time, run);
  memoryChart(memory);
}

const sets = [...new Set(runs.flatMap(run => run.begin.inputs.map(input => input.replace(/.*\//, ""))))];
byId("title").textContent = runs.length === 1 ? `${runs[0].name}: ${runs[0].begin.solver}, ${runs[0].begin.loss}` : `${runs.length} runs${sets.length === 1 ? ` on ${sets[0]}` : ""}`;
byId("lead").textContent = runs.length === 1 ? `${result(runs[0]).words[0].toUpperCase()}${result(runs[0]).words.slice(1)}.` : runs.length < 7 ? runs.map(run => `${run.name}: ${result(run).words}`).join("; ") + "." : "";
document.title = `linblock report: ${runs.slice(0, 4).map(run => run.name).join(", ")}${runs.length > 4 ? ", …" : ""}`;
summaryTable();
byId("time-key").append(...kinds.map(([kind, words]) => element("li", {}, element("i", { style: `background: var(--${kind})` }), words)));
byId("full").append(...runs.map(fullRun));
for (const button of document.querySelectorAll("[data-x], [data-log]")) button.addEventListener("click", () => {
  if (button.dataset.x) state.x = button.dataset.x; else state.log = Boolean(button.dataset.log);
  for (const other of button.parentElement.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
  draw();
});
let drawnWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth !== drawnWidth) { drawnWidth = innerWidth; draw(); } });
draw();
