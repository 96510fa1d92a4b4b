// Turns elements with `data-chart`, the address of charts as JSON, into charts with tables. They outlive renewals of the page, and are
// drawn again when it is renewed.
"use strict";

(() => {
  // The next time of a page that is renewed often.
  const SLOWEST = 10_000;
  const HEIGHT = 190;
  const shown = new WeakMap();
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const COLOURS = ["--runs", "--waits", "--good", "--paused", "--bad", "--off"];
  const DASHES = [[], [6, 3], [2, 3], [10, 3, 2, 3], [4, 2], [1, 4]];

  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const isPlain = (size) => size === 0 || (size >= 1e-3 && size < 1e7);
  const short = (value) => value === null || value === undefined ? "–" : isPlain(Math.abs(value)) ? String(Number(value.toPrecision(5))) : value.toExponential(3).replace(/\.?0+e/, "e");
  const place = (axis, x) => axis === "time" ? new Date(x * 1000).toLocaleString() : short(x);

  // uPlot needs places that rise: where a job repeats steps, its newest value counts.
  function ordered(curve) {
    const values = new Map();
    curve.x.forEach((x, index) => values.set(x, curve.y[index]));
    const x = [...values.keys()].sort((a, b) => a - b);
    return [x, x.map((at) => values.get(at))];
  }

  function options(chart, width) {
    const line = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "11px system-ui" };
    const series = chart.curves.map((curve, index) => ({
      label: curve.name, stroke: colour(curve.kind ? `--${curve.kind}` : COLOURS[index % COLOURS.length]), dash: DASHES[index % DASHES.length], width: 1.5, spanGaps: true,
      points: { show: curve.x.length < 40, size: 5 }, value: (_, value) => short(value),
    }));
    return {
      width, height: HEIGHT, scales: { x: { time: chart.axis === "time" } }, cursor: { drag: { x: true, y: false } },
      axes: [line, { ...line, size: 58, values: (_, ticks) => ticks.map(short) }],
      series: [{ label: chart.axis, value: (_, x) => x === null ? "–" : place(chart.axis, x) }, ...series],
    };
  }

  function table(chart) {
    const details = make("details"), table = make("table"), head = make("tr"), body = make("tbody");
    for (const name of ["Series", "Values", `Last ${chart.axis}`, "Last", "Least", "Greatest"]) { const cell = make("th", name); cell.scope = "col"; head.append(cell); }
    for (const curve of chart.curves) {
      const row = make("tr"), name = make("th", curve.name);
      name.scope = "row";
      const last = curve.y.length - 1;
      const least = curve.y.reduce((a, b) => Math.min(a, b), Infinity), greatest = curve.y.reduce((a, b) => Math.max(a, b), -Infinity);
      row.append(name, make("td", String(curve.y.length)), ...(last < 0 ? ["–", "–", "–", "–"] : [place(chart.axis, curve.x[last]), short(curve.y[last]), short(least), short(greatest)]).map((text) => make("td", text)));
      body.append(row);
    }
    const top = make("thead");
    top.append(head);
    table.append(top, body);
    details.append(make("summary", "As a table"), table);
    return details;
  }

  const widthOf = (element) => Math.max(220, Math.floor(element.clientWidth));

  function draw(element, answer) {
    const state = shown.get(element);
    for (const plot of state.plots) plot.destroy();
    const open = new Set([...element.querySelectorAll("details[open]")].map((details) => details.dataset.of));
    state.plots = [];
    element.replaceChildren();
    for (const chart of answer.charts) {
      const figure = make("figure"), frame = make("div", undefined, "plot"), caption = make("figcaption", chart.title);
      frame.setAttribute("role", "img");
      const newest = chart.curves.at(-1), last = newest?.y.at(-1);
      frame.setAttribute("aria-label", `${chart.title} by ${chart.axis}${last === undefined ? "" : `, last ${short(last)}`}. The table below has the values.`);
      const details = table(chart);
      details.dataset.of = chart.title;
      details.open = open.has(chart.title);
      figure.append(caption, frame, details);
      if (chart.note) figure.append(make("p", chart.note, "hint"));
      element.append(figure);
      if (chart.curves.every((curve) => curve.x.length === 0)) { frame.replaceWith(make("p", "No finite value was reported.", "hint")); continue; }
      const plot = new uPlot(options(chart, widthOf(frame)), uPlot.join(chart.curves.map(ordered)), frame);
      // The texts of the legend are in the table, too.
      plot.root.querySelector(".u-legend")?.setAttribute("aria-hidden", "true");
      state.plots.push(plot);
    }
    for (const note of answer.notes) element.append(make("p", note, "hint"));
    if (answer.charts.length === 0) element.append(make("p", "Nothing was reported yet.", "hint"));
  }

  async function read(element) {
    const state = shown.get(element);
    if (state.isReading || document.hidden) { state.isStale = true; return; }
    const wait = state.next - Date.now();
    if (wait > 0) { state.timer ??= setTimeout(() => { state.timer = null; read(element); }, wait); return; }
    state.isReading = true;
    state.isStale = false;
    state.next = Date.now() + SLOWEST;
    try {
      const answer = await fetch(element.dataset.chart, { headers: { accept: "application/json" } });
      const text = answer.ok ? await answer.text() : null;
      // What has not changed is not drawn again, so that a zoom stays.
      if (text !== null && text !== state.text && element.isConnected) {
        state.text = text;
        draw(element, JSON.parse(text));
      } else if (text === null && state.text === null) {
        element.replaceChildren(make("p", "The charts cannot be read now.", "hint"));
      }
    } catch {
      // The page is renewed again.
    } finally {
      state.isReading = false;
    }
  }

  const widths = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      for (const plot of shown.get(target)?.plots ?? []) {
        const width = widthOf(plot.root.parentElement);
        if (Math.abs(plot.width - width) > 1) plot.setSize({ width, height: HEIGHT });
      }
    }
  });

  function all() {
    for (const element of document.querySelectorAll("[data-chart]")) {
      if (!shown.has(element)) {
        shown.set(element, { plots: [], text: null, next: 0, timer: null, isReading: false, isStale: false });
        widths.observe(element);
      }
      read(element);
    }
  }

  function redraw() {
    for (const element of document.querySelectorAll("[data-chart]")) {
      const state = shown.get(element);
      if (state?.text) draw(element, JSON.parse(state.text));
    }
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.addEventListener("htmx:afterSwap", all);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) all(); });
  all();
})();
