// Pictures and tables of what is on the screen.

import { niceTicks, short, svg } from "./dom";
import { STROKES, tinted } from "./plot";
import type { Store } from "./store";
import { colourOf, markerPath, radius, type Theme } from "./theme";
import type { FitReply, Path } from "./types";

const W = 640, H = 520, L = 52, B = 44, T = 30, R = 14;

/** The picture of one panel, as a document of its own. */
export function picture(store: Store, reply: FitReply | null, theme: Theme, title: string): string {
  const { view, points, axes } = store;
  const X = (v: number) => L + ((v - view.x[0]) / (view.x[1] - view.x[0])) * (W - L - R);
  const Y = (v: number) => H - B - ((v - view.y[0]) / (view.y[1] - view.y[0])) * (H - T - B);
  const d = (path: Path, closed: boolean) => {
    let text = "";
    for (let k = 0; k < path.length; k += 2) text += `${k ? "L" : "M"}${X(path[k]).toFixed(2)} ${Y(path[k + 1]).toFixed(2)}`;
    return closed ? `${text}Z` : text;
  };
  const shapes = (all: Path[][]) => all.flat().map((ring) => d(ring, true)).join("");
  const lines = (paths: Path[], colour: string, role: string) => {
    const look = STROKES[role] ?? STROKES.level;
    return svg("path", { d: paths.map((path) => d(path, false)).join(""), fill: "none", stroke: colour, "stroke-width": look.width, "stroke-dasharray": look.dash.join(" "), opacity: look.alpha });
  };
  const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${W} ${H}`, width: W, height: H, "font-family": "system-ui, sans-serif", "font-size": 12 });
  root.append(svg("title", {}, title), svg("rect", { width: W, height: H, fill: theme.page }));
  root.append(svg("clipPath", { id: "frame" }, svg("rect", { x: L, y: T, width: W - L - R, height: H - T - B })));
  const inside = svg("g", { "clip-path": "url(#frame)" });
  if (reply && !reply.error) {
    const shade = Uint8Array.from(atob(reply.shade), (c) => c.charCodeAt(0)), n = reply.grid;
    const w = (W - L - R) / (n - 1), v = (H - T - B) / (n - 1);
    reply.regions.forEach((region, k) => {
      const colour = colourOf(theme, region.action), path = shapes(region.shapes);
      root.append(svg("clipPath", { id: `region-${k}` }, svg("path", { d: path, "clip-rule": "evenodd" })));
      inside.append(svg("path", { d: path, fill: colour, "fill-opacity": 0.1, "fill-rule": "evenodd" }));
      if (region.action >= 0) inside.append(svg("g", { "clip-path": `url(#region-${k})` }, svg("image", {
        href: tinted(shade, n, colour).toDataURL(), x: X(reply.view.x[0]) - w / 2, y: Y(reply.view.y[1]) - v / 2, width: w * n, height: v * n, preserveAspectRatio: "none",
      })));
    });
    for (const one of reply.levels) inside.append(lines(one.paths, theme.ink, "level"));
    for (const one of reply.extras) if (one.type === "lines") inside.append(lines(one.paths, colourOf(theme, one.action), one.role));
    inside.append(lines(reply.boundary, theme.ink, "boundary"));
  }
  for (let i = 0; i < points.x.length; i++) inside.append(svg("path", {
    d: markerPath(points.label[i], radius(points.weight[i], points.x.length)), transform: `translate(${X(points.x[i]).toFixed(2)} ${Y(points.y[i]).toFixed(2)})`,
    fill: colourOf(theme, points.label[i]), stroke: theme.page,
  }));
  root.append(inside, svg("rect", { x: L, y: T, width: W - L - R, height: H - T - B, fill: "none", stroke: theme.muted }));
  const text = (attributes: Record<string, unknown>, words: string) => root.append(svg("text", { fill: theme.muted, ...attributes }, words));
  for (const t of niceTicks(...view.x, 6)) text({ x: X(t), y: H - B + 17, "text-anchor": "middle" }, short(t));
  for (const t of niceTicks(...view.y, 6)) text({ x: L - 7, y: Y(t) + 4, "text-anchor": "end" }, short(t));
  text({ x: (L + W - R) / 2, y: H - 8, "text-anchor": "middle", fill: theme.ink }, axes[0]);
  text({ x: -(T + H - B) / 2, y: 14, transform: "rotate(-90)", "text-anchor": "middle", fill: theme.ink }, axes[1]);
  text({ x: L, y: 19, fill: theme.ink, "font-size": 14 }, title);
  return new XMLSerializer().serializeToString(root);
}

export async function raster(text: string): Promise<Blob> {
  const image = new Image();
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  await new Promise((resolve, reject) => {
    image.onload = resolve;
    image.onerror = reject;
    image.src = url;
  });
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * W, 2 * H];
  canvas.getContext("2d")!.drawImage(image, 0, 0, 2 * W, 2 * H);
  URL.revokeObjectURL(url);
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(blob!), "image/png"));
}

/** x, y, label (its place), weight, class: the copied code reads the first four. */
export function table(store: Store): string {
  const quoted = (text: string) => `"${text.replaceAll('"', '""').replace(/\s/g, " ")}"`;
  const { x, y, label, weight } = store.points;
  const rows = x.map((_, i) => [x[i], y[i], label[i], weight[i], quoted(store.classes[label[i]])].join(","));
  return [`${quoted(store.axes[0])},${quoted(store.axes[1])},label,weight,class`, ...rows, ""].join("\n");
}

export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
