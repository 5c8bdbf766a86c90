// Draws the pictures of a report from the values in #charts, as wide as the page is, anew when that changes.
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Okabe and Ito's colours, told apart by the colour-blind; symbols tell groups apart in print
  const groups = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#7f7f7f", "#b8a900", "#117733"];
  const percent = d3.format(".0%");
  const short = (name) => (name.length > 26 ? name.slice(0, 17) + "…" + name.slice(-8) : name);
  const style = { background: "none", color: "var(--ink)", fontSize: "12px", fontFamily: "inherit" };

  const kinds = {
    bars: (c, width) => ({
      height: 40 + 22 * c.bars.length, marginLeft: Math.min(190, width * 0.4), marginRight: 40,
      x: { label: c.unit, domain: [0, Math.max(0.01, d3.max(c.bars, (d) => d.value))], tickFormat: c.percent ? percent : undefined, ticks: 4, grid: true },
      y: { label: null, domain: c.bars.map((d) => d.name), tickFormat: short },
      marks: [
        Plot.barX(c.bars, { x: "value", y: "name", fill: color("--fill"), tip: true }),
        Plot.text(c.bars, { x: "value", y: "name", text: (d) => d3.format(".0%")(d.value), dx: 4, textAnchor: "start" }),
        Plot.ruleX([0]),
      ],
    }),
    columns: (c) => ({
      height: 240, x: { label: c.x, domain: c.bars.map((d) => d.name) }, y: { label: c.y, tickFormat: percent, ticks: 5, grid: true },
      marks: [
        Plot.barY(c.bars, { x: "name", y: "value", fill: (d) => (d.on ? color("--fill") : color("--pale")), tip: true }),
        Plot.ruleY([0]),
      ],
    }),
    dots: (c, width) => ({
      height: Math.min(460, Math.max(300, width * 0.62)), x: { label: c.x, ticks: 6 }, y: { label: c.y, ticks: 6 },
      // symbols and colours in one legend, as long as there are symbols enough
      color: { domain: known(c), range: groups, legend: known(c).length > 7, type: "ordinal" }, symbol: { domain: known(c), legend: known(c).length <= 7 },
      marks: [
        Plot.dot(c.points, { x: (d) => d[0], y: (d) => d[1], stroke: (d) => "group " + d[2], symbol: (d) => "group " + d[2], r: 2.6, strokeWidth: 1.2, strokeOpacity: 0.8 }),
      ],
    }),
    curve: (c) => ({
      height: 240, x: { label: c.x, ticks: Math.min(10, c.points.length), tickFormat: "d", inset: 12 }, y: { label: c.y, ticks: 5, grid: true, nice: true },
      marginLeft: 70,
      marks: [
        Plot.rectX([c], { x1: c.low - 0.3, x2: c.high + 0.3, fill: color("--pale"), fillOpacity: 0.35 }),
        Plot.lineY(c.points, { x: (d) => d[0], y: (d) => d[1], stroke: color("--fill") }),
        Plot.dot(c.points, { x: (d) => d[0], y: (d) => d[1], fill: color("--fill"), r: 2.5, tip: true }),
        Plot.dot(c.points.filter((d) => d[0] === c.choice), { x: (d) => d[0], y: (d) => d[1], r: 7, stroke: color("--mark"), strokeWidth: 2 }),
      ],
    }),
    heat: (c, width) => ({
      height: 70 + 28 * c.columns.length, marginLeft: Math.min(190, width * 0.4), marginTop: 40, padding: 0.05,
      x: { label: null, domain: c.groups, axis: "top", tickFormat: (g) => (c.groups.length > 6 ? g.replace("group ", "") : g) },
      y: { label: null, domain: c.columns, tickFormat: short },
      color: { type: "diverging", scheme: "PuOr", pivot: 0, symmetric: true, reverse: true },
      marks: [
        Plot.cell(c.cells, { x: "group", y: "column", fill: "value", tip: { format: { fill: false, x: false, y: false } }, title: (d) => d.group + "\n" + d.text }),
        (width - Math.min(190, width * 0.4)) / c.groups.length > 34 ? Plot.text(c.cells, { x: "group", y: "column", text: (d) => d3.format("+.1f")(d.value), fill: (d) => dark(c, d) ? "white" : "black", pointerEvents: "none" }) : null,
      ],
    }),
    histogram: (c) => ({
      height: 240, x: { label: c.x, ticks: 6 }, y: { label: c.y, type: "sqrt", ticks: 5, grid: true },
      color: { domain: ["usual", "odd"], range: [color("--pale"), color("--mark")], legend: true },
      marks: [
        Plot.rectY(stacked(c), { x1: "low", x2: "high", y1: "from", y2: "to", fill: "what", tip: { format: { y1: false, y2: false } } }),
        Plot.ruleY([0]),
      ],
    }),
  };
  const known = (c) => [...new Set(c.points.map((d) => d[2]))].sort((a, b) => a - b).map((g) => "group " + g);
  const dark = (c, d) => Math.abs(d.value) > 0.65 * d3.max(c.cells, (e) => Math.abs(e.value));
  const stacked = (c) => c.bins.flatMap((b) => [
    { low: b.low, high: b.high, from: 0, to: b.usual, what: "usual", rows: b.usual },
    { low: b.low, high: b.high, from: b.usual, to: b.usual + b.odd, what: "odd", rows: b.odd },
  ]).filter((b) => b.rows);

  const draw = () => {
    for (const place of document.querySelectorAll("[data-chart]")) {
      const c = charts[place.dataset.chart], width = Math.max(280, Math.min(760, place.clientWidth));
      const spec = kinds[c.kind](c, width);
      if (spec.x.label) { spec.x.labelOffset = 38; spec.marginBottom = 46; }  // below the numbers, not among them
      place.replaceChildren(Plot.plot({ width, style, ...spec }));
    }
  };
  let last = 0;
  addEventListener("resize", () => { if (innerWidth !== last) { last = innerWidth; draw(); } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details")) d.open = true; });
  last = innerWidth;
  draw();
})();
