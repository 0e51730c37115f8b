// The plane: regions and points on a canvas, axes in SVG around it. It draws what it is told and reports pointers and keys.

import { niceTicks, short, svg } from "./dom";
import type { Area, FitReply, Frame, Lines, Path, Points, Range2, Rings } from "./types";
import { channels, colourOf, markerPath, radius, type Theme } from "./theme";

const LEFT = 46, BOTTOM = 38, TOP = 8, RIGHT = 8;
export interface Scene { points: Points; view: Range2; axes: [string, string]; selected: number; cursor: [number, number] | null; held: number[] }
export const STROKES: Record<string, { width: number; dash: number[]; alpha: number }> = {
  boundary: { width: 2.2, dash: [], alpha: 1 },
  level: { width: 1, dash: [2, 3], alpha: 0.45 },
  margin: { width: 1.4, dash: [7, 4], alpha: 0.9 },
  ellipse: { width: 1.3, dash: [], alpha: 0.75 },
  direction: { width: 1.6, dash: [10, 4, 2, 4], alpha: 0.9 },
  truth: { width: 2, dash: [2, 4], alpha: 0.9 },
  draw: { width: 1, dash: [], alpha: 0.18 },
  mode: { width: 1.2, dash: [6, 3], alpha: 0.8 },
  machine: { width: 1, dash: [4, 4], alpha: 0.6 },
};

export class Plot {
  readonly element: HTMLDivElement;
  readonly canvas: HTMLCanvasElement;
  private axes: SVGSVGElement;
  private regions = document.createElement("canvas");
  private dots = document.createElement("canvas");
  private stale = { regions: true, dots: true, axes: true };
  private waiting = 0;
  private width = 100;
  private height = 100;
  private ratio = 1;
  private scene!: Scene;
  private theme!: Theme;
  reply: FitReply | null = null;
  frame: Frame | null = null;
  showLevels = true;
  showExtras = true;
  drawn = 0; // how many frames were painted: for measurements

  constructor(label: string, describedBy: string) {
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", label);
    this.canvas.setAttribute("aria-describedby", describedBy);
    this.axes = svg("svg", { class: "sx-axes", "aria-hidden": "true" });
    this.element = document.createElement("div");
    this.element.className = "sx-plot";
    this.element.append(this.axes, this.canvas);
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  update(scene: Scene, theme: Theme, changed: { points?: boolean; view?: boolean; reply?: boolean; theme?: boolean }): void {
    this.scene = scene;
    this.theme = theme;
    if (changed.points || changed.view || changed.theme) this.stale.dots = true;
    if (changed.reply || changed.view || changed.theme) this.stale.regions = true;
    if (changed.reply) this.stale.dots = true; // which points are wrong
    if (changed.view || changed.theme) this.stale.axes = true;
    this.schedule();
  }

  schedule(): void {
    if (!this.waiting) this.waiting = requestAnimationFrame(() => this.paint());
  }

  private resize(): void {
    const box = this.element.getBoundingClientRect();
    this.width = Math.max(60, box.width - LEFT - RIGHT);
    this.height = Math.max(60, box.height - TOP - BOTTOM);
    this.ratio = window.devicePixelRatio || 1;
    for (const one of [this.canvas, this.regions, this.dots]) {
      one.width = Math.round(this.width * this.ratio);
      one.height = Math.round(this.height * this.ratio);
    }
    this.stale = { regions: true, dots: true, axes: true };
    if (this.scene) this.schedule();
  }

  /** Pixels of the canvas to the plane, and back. */
  toPlane(px: number, py: number): [number, number] {
    const { x, y } = this.scene.view;
    return [x[0] + (px / this.width) * (x[1] - x[0]), y[1] - (py / this.height) * (y[1] - y[0])];
  }

  toPixels(a: number, b: number): [number, number] {
    const { x, y } = this.scene.view;
    return [((a - x[0]) / (x[1] - x[0])) * this.width, ((y[1] - b) / (y[1] - y[0])) * this.height];
  }

  get size(): [number, number] {
    return [this.width, this.height];
  }

  at(event: PointerEvent | MouseEvent): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** The point under a pixel, within reach of a finger or a mouse; the last drawn is on top. */
  hit(px: number, py: number, reach: number): number {
    const { x, y } = this.scene.points;
    let best = -1, least = reach * reach;
    for (let i = x.length - 1; i >= 0; i--) {
      const [a, b] = this.toPixels(x[i], y[i]);
      const d = (a - px) ** 2 + (b - py) ** 2;
      if (d < least) [best, least] = [i, d];
    }
    return best;
  }

  private paint(): void {
    this.waiting = 0;
    if (!this.scene) return;
    if (this.stale.regions) this.paintRegions();
    if (this.stale.dots) this.paintDots();
    if (this.stale.axes) this.paintAxes();
    this.stale = { regions: false, dots: false, axes: false };
    const context = this.canvas.getContext("2d")!;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.globalAlpha = this.frame ? 0.45 : 1;
    context.drawImage(this.regions, 0, 0);
    context.globalAlpha = 1;
    context.drawImage(this.dots, 0, 0);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    for (const i of this.scene.held) this.dot(context, i, false);
    if (this.frame) {
      this.stroke(context, this.frame.paths, this.theme.ink, { width: 2.6, dash: [], alpha: 1 });
      if (this.frame.place !== null) this.ring(context, this.frame.place, 13, this.theme.ink, 2);
    }
    if (this.scene.selected >= 0) this.ring(context, this.scene.selected, 11, this.theme.accent, 2.5);
    if (this.scene.cursor) this.cross(context, this.scene.cursor);
    this.drawn++;
  }

  private shape(shapes: Path[][]): Path2D {
    const path = new Path2D();
    for (const polygon of shapes) for (const ring of polygon) {
      for (let k = 0; k < ring.length; k += 2) {
        const [a, b] = this.toPixels(ring[k], ring[k + 1]);
        if (k) path.lineTo(a, b);
        else path.moveTo(a, b);
      }
      path.closePath();
    }
    return path;
  }

  private stroke(context: CanvasRenderingContext2D, paths: Path[], colour: string, look: { width: number; dash: number[]; alpha: number }): void {
    context.beginPath();
    for (const path of paths) for (let k = 0; k < path.length; k += 2) {
      const [a, b] = this.toPixels(path[k], path[k + 1]);
      if (k) context.lineTo(a, b);
      else context.moveTo(a, b);
    }
    context.save();
    context.globalAlpha *= look.alpha;
    context.strokeStyle = colour;
    context.lineWidth = look.width;
    context.lineJoin = "round";
    context.setLineDash(look.dash);
    context.stroke();
    context.restore();
  }

  private paintRegions(): void {
    const context = this.regions.getContext("2d")!;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.regions.width, this.regions.height);
    if (!this.reply || this.reply.error) return;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const { reply, theme } = this;
    const shade = Uint8Array.from(atob(reply.shade), (c) => c.charCodeAt(0));
    for (const region of reply.regions) {
      const path = this.shape(region.shapes);
      context.save();
      if (region.action < 0) {
        context.fillStyle = hatch(context, theme.muted);
        context.fill(path, "evenodd");
      } else {
        const colour = colourOf(theme, region.action);
        context.globalAlpha = 0.1;
        context.fillStyle = colour;
        context.fill(path, "evenodd");
        context.globalAlpha = 1;
        context.clip(path, "evenodd");
        const n = reply.grid, [x0, y0] = this.toPixels(reply.view.x[0], reply.view.y[0]), [x1, y1] = this.toPixels(reply.view.x[1], reply.view.y[1]);
        const w = (x1 - x0) / (n - 1), v = (y0 - y1) / (n - 1);
        context.drawImage(tinted(shade, n, colour), x0 - w / 2, y1 - v / 2, w * n, v * n);
      }
      context.restore();
    }
    const extras = this.showExtras ? reply.extras : [];
    for (const one of extras) if (one.type === "area") {
      context.save();
      context.fillStyle = hatch(context, theme.ink);
      context.fill(this.shape((one as Area).shapes), "evenodd");
      context.restore();
    }
    if (this.showLevels) for (const level of reply.levels) this.drawLines(context, level);
    for (const one of extras) if (one.type === "lines") this.drawLines(context, one);
    this.stroke(context, reply.boundary, theme.ink, STROKES.boundary);
  }

  private drawLines(context: CanvasRenderingContext2D, one: Lines): void {
    this.stroke(context, one.paths, colourOf(this.theme, one.action), STROKES[one.role] ?? STROKES.level);
  }

  private paintDots(): void {
    const context = this.dots.getContext("2d")!;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.dots.width, this.dots.height);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const { points, held } = this.scene, n = points.x.length;
    const wrong = new Set(this.reply && !this.reply.error ? this.reply.measures.wrong : []);
    const skip = new Set(held);
    for (let i = 0; i < n; i++) if (!skip.has(i)) this.dot(context, i, wrong.has(i));
    if (!this.reply || this.reply.error || !this.showExtras) return;
    for (const one of this.reply.extras) if (one.type === "rings") this.drawRings(context, one);
  }

  private dot(context: CanvasRenderingContext2D, i: number, wrong: boolean): void {
    const { points } = this.scene, n = points.x.length;
    const [a, b] = this.toPixels(points.x[i], points.y[i]);
    const r = radius(points.weight[i], n), colour = colourOf(this.theme, points.label[i]);
    if (n > 5000) {
      context.fillStyle = colour;
      context.fillRect(a - r, b - r, 2 * r, 2 * r);
      return;
    }
    context.save();
    context.translate(a, b);
    const path = marker(points.label[i], r);
    context.fillStyle = colour;
    context.globalAlpha = points.weight[i] === 0 ? 0.25 : 0.92;
    context.fill(path);
    context.globalAlpha = 1;
    context.lineWidth = wrong ? 1.6 : 1;
    context.strokeStyle = wrong ? this.theme.ink : this.theme.page;
    context.stroke(path);
    context.restore();
  }

  private drawRings(context: CanvasRenderingContext2D, one: Rings): void {
    const n = this.scene.points.x.length;
    one.places.forEach((i, k) => {
      if (i >= n) return;
      if (one.role === "slack") {
        context.save();
        context.globalAlpha = 0.16;
        const [a, b] = this.toPixels(this.scene.points.x[i], this.scene.points.y[i]);
        context.fillStyle = this.theme.ink;
        context.beginPath();
        context.arc(a, b, Math.min(26, 7 + 6 * (one.sizes?.[k] ?? 0)), 0, 7);
        context.fill();
        context.restore();
      } else this.ring(context, i, radius(1, n) + 4, this.theme.ink, 1.3);
    });
  }

  private ring(context: CanvasRenderingContext2D, i: number, r: number, colour: string, width: number): void {
    if (i >= this.scene.points.x.length) return;
    const [a, b] = this.toPixels(this.scene.points.x[i], this.scene.points.y[i]);
    context.beginPath();
    context.arc(a, b, r, 0, 7);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }

  private cross(context: CanvasRenderingContext2D, at: [number, number]): void {
    const [a, b] = this.toPixels(...at);
    context.beginPath();
    context.moveTo(a - 12, b); context.lineTo(a + 12, b);
    context.moveTo(a, b - 12); context.lineTo(a, b + 12);
    context.strokeStyle = this.theme.accent;
    context.lineWidth = 2;
    context.stroke();
  }

  private paintAxes(): void {
    const { view, axes } = this.scene, W = this.width, H = this.height;
    this.axes.replaceChildren();
    this.axes.setAttribute("viewBox", `0 0 ${W + LEFT + RIGHT} ${H + TOP + BOTTOM}`);
    const group = svg("g", { transform: `translate(${LEFT} ${TOP})` });
    group.append(svg("rect", { width: W, height: H, class: "sx-frame" }));
    for (const t of niceTicks(...view.x, Math.max(2, W / 90))) {
      const a = this.toPixels(t, view.y[0])[0];
      group.append(svg("line", { x1: a, x2: a, y1: H, y2: H + 4 }), svg("text", { x: a, y: H + 16, "text-anchor": "middle" }, short(t)));
    }
    for (const t of niceTicks(...view.y, Math.max(2, H / 70))) {
      const b = this.toPixels(view.x[0], t)[1];
      group.append(svg("line", { x1: -4, x2: 0, y1: b, y2: b }), svg("text", { x: -7, y: b + 3.5, "text-anchor": "end" }, short(t)));
    }
    group.append(
      svg("text", { x: W / 2, y: H + 32, "text-anchor": "middle", class: "sx-name" }, clipped(axes[0], W / 7)),
      svg("text", { x: -H / 2, y: -LEFT + 11, transform: "rotate(-90)", "text-anchor": "middle", class: "sx-name" }, clipped(axes[1], H / 7)),
    );
    this.axes.append(group);
  }
}

function clipped(text: string, most: number): string {
  const n = Math.max(6, Math.floor(most));
  return text.length > n ? `${text.slice(0, n - 1)}…` : text;
}

const markers = new Map<string, Path2D>();
function marker(label: number, r: number): Path2D {
  const key = `${label % 6} ${r.toFixed(2)}`;
  let path = markers.get(key);
  if (!path) markers.set(key, (path = new Path2D(markerPath(label, r))));
  return path;
}

/** The shading of a region: its colour, the more opaque the surer the rule is. Rows come from the bottom. */
export function tinted(shade: Uint8Array, n: number, colour: string): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = n;
  const context = canvas.getContext("2d")!, image = context.createImageData(n, n), [r, g, b] = channels(colour);
  for (let row = 0; row < n; row++) for (let column = 0; column < n; column++) {
    const at = 4 * ((n - 1 - row) * n + column);
    image.data[at] = r; image.data[at + 1] = g; image.data[at + 2] = b;
    image.data[at + 3] = Math.round(0.25 * shade[row * n + column]);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function hatch(context: CanvasRenderingContext2D, colour: string): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 10;
  const brush = tile.getContext("2d")!;
  brush.globalAlpha = 0.45;
  brush.strokeStyle = colour;
  brush.lineWidth = 1.2;
  brush.beginPath();
  for (const s of [-10, 0, 10]) { brush.moveTo(s, 10); brush.lineTo(s + 10, 0); }
  brush.stroke();
  return context.createPattern(tile, "repeat") ?? colour;
}
