// Draws the pictures of a report from the values in #charts, as wide as the page is, anew when that changes.
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  // Okabe and Ito's colours, told apart by the colour-blind; symbols and numbers tell groups apart in print
  const colors = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#7f7f7f", "#b8a900", "#117733"];
  const SYMBOLS = 7, MANY = 1000, FAR = 3;  // that Plot has; points, from which on they are counted; deviations that colours tell apart
  const percent = d3.format(".0%");
  const share = (v) => (v === 0 || v === 1 ? percent(v) : v < 0.001 ? "<0.1%" : v > 0.999 ? ">99.9%" : d3.format(v < 0.1 || v > 0.9 ? ".1%" : ".0%")(v));
  const style = { background: "none", color: "var(--ink)", fontSize: "12px", fontFamily: "inherit" };

  const pen = document.createElement("canvas").getContext("2d");
  const long = (text) => pen.measureText(text).width;
  const ends = (name, n) => name.slice(0, Math.ceil(n * 0.65)) + "…" + name.slice(name.length - Math.floor(n * 0.35));
  const cut = (name, room) => {  // its middle left out, where there is no room
    let n = name.length;
    if (long(name) <= room) return name;
    while (n > 4 && long(ends(name, n)) > room) n--;
    return ends(name, n);
  };
  const beside = (names, width) => {  // a margin for names, and how they are written in it
    const room = Math.min(Math.ceil(d3.max(names, long) ?? 0), width * 0.4);
    return [room + 14, (name) => cut(name, room + 1)];
  };
  const thinned = (n, width, room) => { const step = Math.ceil((n * room) / width); return (d, i) => (i % step ? "" : d); };

  const kinds = {
    bars: (c, width) => {
      const [marginLeft, tickFormat] = beside(c.bars.map((d) => d.name), width);
      return {
        height: 54 + 22 * c.bars.length, marginTop: 8, marginLeft, marginRight: 48,
        x: { label: c.unit, domain: [0, Math.max(0.01, d3.max(c.bars, (d) => d.value))], tickFormat: percent, ticks: 4, grid: true },
        y: { label: null, domain: c.bars.map((d) => d.name), tickFormat },
        marks: [
          Plot.barX(c.bars, { x: "value", y: "name", fill: "var(--fill)", title: (d) => d.name + "\n" + share(d.value), tip: true }),
          Plot.text(c.bars, { x: "value", y: "name", text: (d) => share(d.value), dx: 4, textAnchor: "start" }),
          Plot.ruleX([0]),
        ],
      };
    },
    columns: (c, width) => ({
      height: 240, marginLeft: 46,
      x: { label: c.x, domain: c.bars.map((d) => d.name), tickFormat: thinned(c.bars.length, width - 60, 20) },
      y: { label: c.y, tickFormat: percent, ticks: 5, grid: true, nice: true },
      marks: [
        Plot.barY(c.bars, { x: "name", y: "value", fill: (d) => (d.on ? "var(--fill)" : "var(--pale)"), title: (d) => `${c.x} ${d.name}: ${share(d.value)}`, tip: true }),
        Plot.ruleY([0]),
      ],
    }),
    dots: (c, width) => {
      const known = [...new Set(c.points.map((d) => d[2]))].sort((a, b) => a - b).map((g) => "group " + g);
      const group = (d) => "group " + d[2], place = { x: (d) => d[0], y: (d) => d[1] };
      const one = known.length === 1, symbols = !one && known.length <= SYMBOLS;
      const each = c.step ?? 1, rows = (v) => (each > 1 ? "about " : "") + d3.format(",")(each * v.length) + " rows";
      const many = c.points.length > MANY, colored = known.length <= colors.length;  // colours for twice as many would be used twice
      return {
        height: Math.min(460, Math.max(300, width * 0.62)), x: { label: c.x, ticks: 6 }, y: { label: c.y, ticks: 6 }, r: { range: [1, 6.5] },
        color: { domain: known, range: colored ? colors : known.map(() => "var(--pale)"), legend: colored && !one && (many || !symbols), type: "ordinal" },
        symbol: { domain: known, legend: symbols && !many },
        marks: many
          ? [Plot.hexagon(c.points, Plot.hexbin({ r: "count", fill: "mode", title: (v) => rows(v) + " here" + (one ? "" : `, most of ${d3.mode(v)}`) },
                                                { ...place, fill: group, title: group, z: null, binWidth: 13, tip: true }))]
          : [Plot.dot(c.points, { ...place, stroke: group, ...(symbols ? { symbol: group } : {}), r: 2.6, strokeWidth: 1.5 })],
        after: (plot) => one || numbers(plot, d3.groups(c.points, (d) => d[2])),
        note: many ? `The larger a hexagon, the more rows are there${colored && !one ? "; its colour is that of most of them" : ""}.${one ? "" : " Numbers: the middles of groups."}` : "",
      };
    },
    curve: (c) => ({
      height: 240, x: { label: c.x, ticks: Math.min(10, c.points.length), tickFormat: "d", inset: 12 }, y: { label: c.y, ticks: 5, grid: true, nice: true },
      marginLeft: 70,
      marks: [
        Plot.rectX([c], { x1: c.low - 0.3, x2: c.high + 0.3, fill: "var(--pale)", fillOpacity: 0.35 }),
        Plot.lineY(c.points, { x: (d) => d[0], y: (d) => d[1], stroke: "var(--fill)" }),
        Plot.dot(c.points, { x: (d) => d[0], y: (d) => d[1], fill: "var(--fill)", r: 2.5, title: (d) => `${c.x}: ${d[0]}\n${d3.format(",.5~g")(d[1])}`, tip: true }),
        Plot.dot(c.points.filter((d) => d[0] === c.choice), { x: (d) => d[0], y: (d) => d[1], r: 7, stroke: "var(--mark)", strokeWidth: 2 }),
      ],
    }),
    heat: (c, width) => {
      const [marginLeft, tickFormat] = beside(c.columns, width), room = (width - marginLeft) / c.groups.length;
      const few = room > 62, most = Math.min(FAR, d3.max(c.cells, (d) => Math.abs(d.value)) || 1);
      const tint = (d) => d3.interpolatePuOr(0.5 - d3.median([-1, d.value / most, 1]) / 2);  // purple is higher
      return {
        height: 60 + 28 * c.columns.length, marginLeft, marginTop: few ? 28 : 44, marginBottom: 6, marginRight: 4, padding: 0.05,
        x: { label: few ? null : "group", labelAnchor: "center", labelArrow: "none", domain: c.groups, axis: "top",
             tickFormat: few ? undefined : (g, i) => thinned(c.groups.length, width - marginLeft, 18)(g.replace("group ", ""), i) },
        y: { label: null, domain: c.columns, tickFormat },
        marks: [
          Plot.cell(c.cells, { x: "group", y: "column", fill: tint, tip: { format: { fill: false, x: false, y: false } }, title: (d) => d.group + "\n" + d.text }),
          room > 34 ? Plot.text(c.cells, { x: "group", y: "column", text: (d) => d3.format("+.1f")(d.value).replace(/^.0\.0$/, "0.0"), fill: (d) => (d3.lab(tint(d)).l < 55 ? "white" : "black"), pointerEvents: "none" }) : null,
        ],
      };
    },
    histogram: (c) => {  // odd ones before the usual: on an axis of roots a bar on another would look too low
      const odd = c.bins.some((b) => b.odd);
      return {
        height: 240, x: { label: c.x, ticks: 6 }, y: { label: c.y, type: "sqrt", ticks: 5, grid: true },
        color: { domain: ["usual", "odd"], range: ["var(--pale)", "var(--mark)"], legend: odd },
        marks: [
          ...[["usual", 0.5], ["odd", 2.5]].map(([what, inset]) => Plot.rectY(c.bins.filter((b) => b[what]), {
            x1: "low", x2: "high", y: what, fill: () => what, insetLeft: inset, insetRight: inset, tip: true,
            title: (b) => `${b[what]} rows, ${what}\nscores ${d3.format(",.3~g")(b.low)} to ${d3.format(",.3~g")(b.high)}`,
          })),
          Plot.ruleY([0]),
        ],
      };
    },
  };

  // The number of each group in its middle, the largest first; where one is already, beside it.
  const numbers = (plot, groups) => {
    const svg = d3.select(plot).selectAll("svg").empty() ? d3.select(plot) : d3.select(plot).selectAll(":scope > svg");
    const x = plot.scale("x").apply, y = plot.scale("y").apply, taken = [];
    const free = (at) => taken.every((b) => Math.abs(b[0] - at[0]) > 18 || Math.abs(b[1] - at[1]) > 16);
    const labels = d3.sort(groups, ([, points]) => -points.length).map(([g, points]) => {
      const at = [x(d3.median(points, (d) => d[0])), y(d3.median(points, (d) => d[1]))];
      const tries = d3.range(60).map((i) => [at[0] + 3 * i * Math.cos(i), at[1] + 2.4 * i * Math.sin(i)]);
      taken.push(tries.find(free) ?? at);
      return [g, taken.at(-1)];
    });
    svg.append("g").attr("class", "numbers").selectAll("text").data(labels).join("text")
      .attr("x", (d) => d[1][0]).attr("y", (d) => d[1][1]).text((d) => d[0]);
  };

  const draw = () => {
    pen.font = "12px " + getComputedStyle(document.body).fontFamily;
    for (const place of document.querySelectorAll("[data-chart]")) {
      const c = charts[place.dataset.chart], width = Math.max(280, Math.min(760, place.clientWidth));
      const { after, note, ...spec } = kinds[c.kind](c, width);
      if (spec.x.label && spec.x.axis !== "top") { spec.x.labelOffset = 38; spec.marginBottom = 46; }  // below the numbers, not among them
      const plot = Plot.plot({ width, style, marginTop: 30, ...spec });
      after?.(plot);
      plot.ariaHidden = "true";  // the place says what it shows
      place.replaceChildren(plot);
      if (note) d3.select(place).append("p").attr("class", "note").text(note);
    }
  };
  let last = innerWidth, closed = [];
  addEventListener("resize", () => { if (innerWidth !== last) { last = innerWidth; draw(); } });
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const d of closed) d.open = true;
  });
  addEventListener("afterprint", () => { for (const d of closed) d.open = false; });
  draw();
})();
