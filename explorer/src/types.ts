// The messages of src/separatrix/explore/protocol.py, as the page sees them.

export type Path = number[]; // x0, y0, x1, y1, …
export interface Range2 { x: [number, number]; y: [number, number] }
export interface Points { x: number[]; y: number[]; label: number[]; weight: number[] }
export interface Control {
  name: string; title: string; kind: "log" | "range" | "whole" | "choice" | "switch"; default: unknown;
  low: number; high: number; options: [unknown, string][]; unlimited: boolean; pad: string; help: string;
}
export interface Family { name: string; title: string; group: string; about: string; film: string; controls: Control[] }
export interface Dataset { name: string; title: string; columns: boolean | null }
export interface Hello { families: Family[]; datasets: Dataset[]; table: { target: string; columns: string[] } | null }
export interface Truth { means: number[][]; covariance: unknown; priors: number[] }
export interface DatasetReply {
  points: Points; classes: string[]; axes: [string, string]; view: Range2; truth: Truth | null;
  columns?: string[]; chosen?: string[] | "discriminant"; left_out?: number; error?: string;
}
export interface Decision { loss: number[][]; reject: number | null; priors: number[] | null }
export interface Lines { type: "lines"; role: string; paths: Path[]; action: number | null; label: string }
export interface Area { type: "area"; role: string; shapes: Path[][]; label: string }
export interface Rings { type: "rings"; role: string; places: number[]; sizes: number[] | null; label: string }
export interface Series { x: number[]; y: number[]; name: string; kind: string; action: number | null }
export interface Chart {
  type: "chart"; title: string; xlabel: string; ylabel: string; series: Series[];
  note?: string; marks?: number[]; ylim?: [number, number]; log?: boolean;
}
export interface Table { type: "table"; title: string; heads: string[]; rows: (string | number)[][]; note: string }
export interface Fact { type: "fact"; name: string; value: string }
export type Extra = Lines | Area | Rings | Chart | Table | Fact;
export interface FitReply {
  kind: "fit"; id: number; panel: number; error?: string;
  regions: { action: number; shapes: Path[][] }[]; shade: string; grid: number; view: Range2;
  boundary: Path[]; levels: Lines[];
  fit: {
    seconds: number; status: string | null; sentence: string; detail: string; iterations?: number; passes?: number;
    severity?: number; certificate: { text: string; gap: number | string; kind: string } | null;
  };
  measures: {
    accuracy: number; wrong: number[];
    confusion: { truths: number[]; actions: number[]; counts: number[][] };
    roc: { false: number[]; true: number[]; area: number } | null;
  };
  extras: Extra[];
}
export interface Frame { paths: Path[]; caption: string; place: number | null }
export interface Probe {
  action: number; probabilities: Record<string, number> | null; score: number | null; distance: number | null; error?: string;
}
export interface Model { family: string; parameters: Record<string, unknown> }
export interface Shared {
  points: Points; classes: string[]; axes: [string, string]; view: Range2; truth: Truth | null;
  models: Model[]; decision: Decision | null; panels: number; data: string;
}
