// What the user has made: points, classes, view, models. Every change goes through here, so that it can be undone.

import type { Decision, Model, Points, Range2, Shared, Truth } from "./types";

export interface Edit { points: Points; classes: string[]; axes: [string, string]; view: Range2; truth: Truth | null }
const copyPoints = (p: Points): Points => ({ x: p.x.slice(), y: p.y.slice(), label: p.label.slice(), weight: p.weight.slice() });
const MOST_UNDO = 60;

export class Store {
  points: Points = { x: [], y: [], label: [], weight: [] };
  classes: string[] = ["blue", "orange"];
  axes: [string, string] = ["x", "y"];
  view: Range2 = { x: [-3, 3], y: [-3, 3] };
  truth: Truth | null = null;
  data = "blobs";
  models: Model[] = [];
  decision: Decision | null = null;
  panels = 1;
  revision = 0; // of the points
  /** Points that only moved since a revision; null once anything else changed. */
  moved: Map<number, true> | null = null;
  private past: Edit[] = [];
  private future: Edit[] = [];

  get n(): number {
    return this.points.x.length;
  }

  /** Keep what is there now, before a change. */
  remember(): void {
    this.past.push({ ...this.now(), points: copyPoints(this.points) });
    if (this.past.length > MOST_UNDO) this.past.shift();
    this.future = [];
  }

  private now(): Edit {
    const { points, classes, axes, view, truth } = this;
    return { points, classes, axes, view, truth };
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }

  undo(): boolean {
    return this.travel(this.past, this.future);
  }

  redo(): boolean {
    return this.travel(this.future, this.past);
  }

  private travel(from: Edit[], to: Edit[]): boolean {
    const edit = from.pop();
    if (!edit) return false;
    to.push(this.now());
    Object.assign(this, edit);
    this.changed();
    return true;
  }

  forget(): void {
    this.past = [];
    this.future = [];
  }

  changed(): void {
    this.revision++;
    this.moved = null;
  }

  move(i: number, x: number, y: number): void {
    this.points.x[i] = this.rounded(x, this.view.x);
    this.points.y[i] = this.rounded(y, this.view.y);
    this.revision++;
    this.moved?.set(i, true);
  }

  add(x: number, y: number, label: number): number {
    this.points.x.push(this.rounded(x, this.view.x));
    this.points.y.push(this.rounded(y, this.view.y));
    this.points.label.push(label);
    this.points.weight.push(1);
    this.changed();
    return this.n - 1;
  }

  remove(places: number[]): void {
    const gone = new Set(places);
    const keep = <T>(list: T[]) => list.filter((_, i) => !gone.has(i));
    this.points = { x: keep(this.points.x), y: keep(this.points.y), label: keep(this.points.label), weight: keep(this.points.weight) };
    this.changed();
  }

  /** As many digits as a screen can tell apart: the copied code stays short, and says exactly what is fitted. */
  private rounded(value: number, range: [number, number]): number {
    return Number(value.toFixed(Math.min(12, Math.max(0, Math.ceil(4 - Math.log10(range[1] - range[0]))))));
  }

  shared(): Shared {
    const { points, classes, axes, view, truth, models, decision, panels, data } = this;
    return { points, classes, axes, view, truth, models, decision, panels, data };
  }
}

async function squeezed(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream): Promise<Uint8Array<ArrayBuffer>> {
  const through = new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array<ArrayBuffer>>);
  return new Uint8Array(await new Response(through).arrayBuffer());
}

/** A state as text for an address. */
export async function packed(shared: Shared): Promise<string> {
  const bytes = await squeezed(new TextEncoder().encode(JSON.stringify(shared)), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function unpacked(text: string): Promise<Shared> {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(await squeezed(bytes, new DecompressionStream("deflate-raw")))) as Shared;
}
