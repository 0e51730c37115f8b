// Colours come from the style sheet, so that the page, the pictures and the exports agree by day and by night.

export interface Theme { page: string; ink: string; muted: string; line: string; accent: string; classes: string[] }
export const MARKERS = 6;

export function readTheme(root: Element): Theme {
  const style = getComputedStyle(root);
  const get = (name: string) => style.getPropertyValue(name).trim();
  return {
    page: get("--page"), ink: get("--ink"), muted: get("--muted"), line: get("--line"), accent: get("--accent"),
    classes: [0, 1, 2, 3, 4, 5].map((k) => get(`--class-${k}`)),
  };
}

export function colourOf(theme: Theme, action: number | null): string {
  if (action === null) return theme.ink;
  return action < 0 ? theme.muted : theme.classes[action % theme.classes.length];
}

export function channels(colour: string): [number, number, number] {
  const hex = colour.replace("#", "");
  return [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16)) as [number, number, number];
}

/** The outline of a class's marker about the origin, as SVG has it. */
export function markerPath(label: number, r: number): string {
  const n = (v: number) => Number(v.toFixed(2));
  const s = n(r * 0.89), t = n(r * 1.15), q = n(r * 0.42), w = n(r * 1.1);
  switch (label % MARKERS) {
    case 0: return `M${n(-r)} 0A${n(r)} ${n(r)} 0 1 0 ${n(r)} 0A${n(r)} ${n(r)} 0 1 0 ${n(-r)} 0Z`;
    case 1: return `M${-s} ${-s}H${s}V${s}H${-s}Z`;
    case 2: return `M0 ${-t}L${t} ${n(r * 0.85)}H${-t}Z`;
    case 3: return `M0 ${-t}L${t} 0L0 ${t}L${-t} 0Z`;
    case 4: return `M0 ${t}L${t} ${n(-r * 0.85)}H${-t}Z`;
    default: return `M${-q} ${-w}H${q}V${-q}H${w}V${q}H${q}V${w}H${-q}V${q}H${-w}V${-q}H${-q}Z`;
  }
}

export function radius(weight: number, n: number): number {
  const base = n > 5000 ? 1.8 : n > 1200 ? 2.8 : n > 400 ? 3.6 : 4.6;
  return weight === 0 ? base * 0.6 : base * Math.min(3, Math.sqrt(weight));
}
