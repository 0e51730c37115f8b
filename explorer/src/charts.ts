// Small diagrams beside the plane: lines, dots, bars; the numbers come with the answer.

import { h, niceTicks, short, svg } from "./dom";
import { colourOf, type Theme } from "./theme";
import type { Chart, FitReply, Series, Table } from "./types";

const W = 300, H = 172, L = 40, R = 8, T = 8, B = 34;

function limits(values: number[], log: boolean): [number, number] {
  const kept = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
  let low = Math.min(...kept), high = Math.max(...kept);
  if (!kept.length) [low, high] = [0, 1];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return [low, high];
}

export function drawChart(chart: Chart, theme: Theme): HTMLElement {
  const numbers = (one: number[]) => one.map(Number);
  const series = chart.series.map((s) => ({ ...s, x: numbers(s.x), y: numbers(s.y) }));
  const log = Boolean(chart.log), scale = (v: number) => (log ? Math.log10(Math.max(v, 1e-300)) : v);
  const xs = limits(series.flatMap((s) => s.x), false);
  let ys = limits(series.flatMap((s) => s.y), log).map(scale) as [number, number];
  if (chart.ylim) ys = chart.ylim;
  else if (!log) ys = [ys[0] >= 0 ? 0 : ys[0], ys[1] + 0.06 * (ys[1] - ys[0])];
  const X = (v: number) => L + ((v - xs[0]) / (xs[1] - xs[0])) * (W - L - R);
  const Y = (v: number) => H - B - ((scale(v) - ys[0]) / (ys[1] - ys[0])) * (H - T - B);
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${chart.title}: ${chart.ylabel} against ${chart.xlabel}. ${spoken(series)}` });
  const clip = `sx-clip-${Math.random().toString(36).slice(2)}`;
  picture.append(svg("clipPath", { id: clip }, svg("rect", { x: L, y: T - 2, width: W - L - R, height: H - T - B + 4 })));
  for (const t of niceTicks(...xs, 4)) picture.append(svg("text", { x: X(t), y: H - B + 14, "text-anchor": "middle" }, short(t)));
  for (const t of niceTicks(...ys, 3)) {
    const y = H - B - ((t - ys[0]) / (ys[1] - ys[0])) * (H - T - B);
    picture.append(svg("line", { x1: L, x2: W - R, y1: y, y2: y, class: "sx-rule" }), svg("text", { x: L - 5, y: y + 3.5, "text-anchor": "end" }, log ? `1e${t}` : short(t)));
  }
  for (const mark of chart.marks ?? []) picture.append(svg("line", { x1: X(Number(mark)), x2: X(Number(mark)), y1: T, y2: H - B, class: "sx-mark" }));
  const inside = svg("g", { "clip-path": `url(#${clip})` });
  for (const one of series) inside.append(...drawSeries(one, X, Y, theme));
  picture.append(inside);
  picture.append(svg("text", { x: (L + W - R) / 2, y: H - 4, "text-anchor": "middle", class: "sx-name" }, chart.xlabel));
  const named = series.filter((s) => s.name);
  return h("figure", { class: "sx-chart" }, h("h4", {}, chart.title), picture,
    named.length > 1 && h("ul", { class: "sx-legend" }, ...named.map((s) => {
      const key = h("i", { class: `sx-key sx-${s.kind}` });
      key.style.setProperty("--c", colourOf(theme, s.action));
      return h("li", {}, key, s.name);
    })),
    chart.note ? h("figcaption", {}, chart.note) : null);
}

function spoken(series: Series[]): string {
  return series.filter((s) => s.name && s.y.length).slice(0, 6)
    .map((s) => `${s.name}: from ${short(Number(s.y[0]))} to ${short(Number(s.y[s.y.length - 1]))}`).join("; ");
}

function drawSeries(one: Series, X: (v: number) => number, Y: (v: number) => number, theme: Theme): SVGElement[] {
  const colour = colourOf(theme, one.action);
  if (one.kind === "bars") return one.y.map((height, k) => svg("rect", {
    x: X(one.x[k]) + 0.4, width: Math.max(0.5, X(one.x[k + 1]) - X(one.x[k]) - 0.8), y: Y(height), height: Math.max(0, Y(0) - Y(height)),
    fill: colour, opacity: one.action === null ? 0.22 : 0.5,
  }));
  if (one.kind === "dots") return [
    line(one, X, Y, colour, "1.4", ""),
    ...one.x.map((x, k) => svg("circle", { cx: X(x), cy: Y(one.y[k]), r: 2.6, fill: colour })),
  ];
  const thin = one.kind === "thin";
  const drawn = line(one, X, Y, colour, thin ? "1" : "2", one.kind === "dashed" ? "5 3" : "");
  if (thin) drawn.setAttribute("opacity", "0.4");
  return [drawn];
}

function line(one: Series, X: (v: number) => number, Y: (v: number) => number, colour: string, width: string, dash: string): SVGElement {
  const d = one.x.map((x, k) => `${k ? "L" : "M"}${X(x).toFixed(1)} ${Math.max(-999, Math.min(999, Y(one.y[k]))).toFixed(1)}`).join("");
  return svg("path", { d, fill: "none", stroke: colour, "stroke-width": width, "stroke-dasharray": dash });
}

export function drawTable(table: Table): HTMLElement {
  return h("div", { class: "sx-chart" }, h("h4", {}, table.title),
    h("div", { class: "sx-scroll", tabindex: "0", role: "region", "aria-label": table.title },
      h("table", {}, h("thead", {}, h("tr", {}, ...table.heads.map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, ...table.rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, String(cell)))))))),
    table.note ? h("p", { class: "sx-note" }, table.note) : null);
}

export function drawConfusion(measures: FitReply["measures"], classes: string[]): HTMLElement {
  const { truths, actions, counts } = measures.confusion;
  const most = Math.max(1, ...counts.flat());
  const name = (code: number) => (code < 0 ? "reject" : classes[code]);
  return h("div", { class: "sx-chart" }, h("h4", {}, "Confusion"),
    h("div", { class: "sx-scroll", tabindex: "0", role: "region", "aria-label": "Confusion" },
      h("table", { class: "sx-confusion" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "truth"), ...actions.map((a) => h("th", { scope: "col" }, `→ ${name(a)}`)))),
        h("tbody", {}, ...truths.map((t, i) => h("tr", {}, h("th", { scope: "row" }, name(t)), ...counts[i].map((n) => {
          const cell = h("td", {}, short(n));
          cell.style.setProperty("--shade", String(n / most));
          return cell;
        })))))));
}

export function rocChart(measures: FitReply["measures"]): Chart | null {
  const roc = measures.roc;
  if (!roc) return null;
  return {
    type: "chart", title: `ROC curve, area ${roc.area.toFixed(3)}`, xlabel: "false positive rate", ylabel: "true positive rate", ylim: [0, 1],
    series: [
      { x: [0, 1], y: [0, 1], name: "", kind: "thin", action: null },
      { x: roc.false, y: roc.true, name: "", kind: "line", action: null },
    ],
  };
}
