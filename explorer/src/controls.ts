// The controls of a family, from its description: sliders, menus, boxes, and a pad where two belong together.

import { h, short, svg } from "./dom";
import type { Control, Decision, Family } from "./types";

type Change = (name: string, value: unknown, live: boolean) => void;
let counter = 0;
export const fresh = (name: string) => `sx-${name}-${++counter}`;

export function defaults(family: Family): Record<string, unknown> {
  return Object.fromEntries(family.controls.map((c) => [c.name, c.default]));
}

const STEPS = 240;
function toSlider(control: Control, value: unknown): number {
  if (value === "inf" || value === Infinity) return STEPS + 1;
  const v = Number(value);
  if (control.kind === "log") return Math.round((STEPS * Math.log(v / control.low)) / Math.log(control.high / control.low));
  if (control.kind === "whole") return v;
  return Math.round((STEPS * (v - control.low)) / (control.high - control.low));
}

function fromSlider(control: Control, place: number): unknown {
  if (control.unlimited && place > STEPS) return "inf";
  if (control.kind === "whole") return place;
  const share = place / STEPS;
  const value = control.kind === "log" ? control.low * (control.high / control.low) ** share : control.low + share * (control.high - control.low);
  return Math.min(control.high, Math.max(control.low, Number(value.toPrecision(4))));
}

const worded = (value: unknown) => (value === "inf" ? "∞" : short(Number(value)));

export function drawControls(family: Family, values: Record<string, unknown>, change: Change): HTMLElement {
  const box = h("div", { class: "sx-controls" });
  const refresh: (() => void)[] = [];
  const set = (name: string, value: unknown, live: boolean) => {
    values[name] = value;
    for (const one of refresh) one();
    change(name, value, live);
  };
  for (const control of family.controls) {
    const id = fresh(control.name);
    if (control.kind === "choice") {
      const menu = h("select", { id, "data-control": control.name, onchange: () => set(control.name, control.options[menu.selectedIndex][0], false) },
        ...control.options.map(([value, title]) => {
          const option = h("option", {}, title);
          option.selected = value === values[control.name];
          return option;
        }));
      box.append(h("div", { class: "sx-control" }, h("label", { for: id }, control.title), menu));
    } else if (control.kind === "switch") {
      const tick = h("input", { id, type: "checkbox", "data-control": control.name, checked: Boolean(values[control.name]), onchange: () => set(control.name, tick.checked, false) });
      box.append(h("div", { class: "sx-control sx-tick" }, tick, h("label", { for: id }, control.title)));
    } else {
      const whole = control.kind === "whole";
      const shown = h("output", { for: id }, worded(values[control.name]));
      const slider = h("input", {
        id, type: "range", "data-control": control.name, min: whole ? control.low : 0, max: whole ? control.high : STEPS + (control.unlimited ? 1 : 0), step: 1,
        value: String(toSlider(control, values[control.name])), "aria-valuetext": worded(values[control.name]),
        oninput: () => set(control.name, fromSlider(control, Number(slider.value)), true),
        onchange: () => set(control.name, fromSlider(control, Number(slider.value)), false),
      });
      refresh.push(() => {
        shown.textContent = worded(values[control.name]);
        slider.value = String(toSlider(control, values[control.name]));
        slider.setAttribute("aria-valuetext", worded(values[control.name]));
      });
      box.append(h("div", { class: "sx-control" }, h("label", { for: id, title: control.help }, control.title), shown, slider));
    }
    if (control.pad) {
      const other = family.controls.find((c) => c.name === control.pad)!;
      const pad = drawPad(control, other, values, set);
      refresh.push(pad.refresh);
      box.append(pad.element);
    }
  }
  return box;
}

function drawPad(across: Control, up: Control, values: Record<string, unknown>, set: Change): { element: HTMLElement; refresh: () => void } {
  const S = 132, knob = svg("circle", { r: 7, class: "sx-knob" });
  const place = () => {
    const a = (Number(values[across.name]) - across.low) / (across.high - across.low), b = (Number(values[up.name]) - up.low) / (up.high - up.low);
    knob.setAttribute("cx", String(8 + a * (S - 16)));
    knob.setAttribute("cy", String(S - 8 - b * (S - 16)));
    pad.setAttribute("aria-valuetext", `${across.title} ${short(Number(values[across.name]))}, ${up.title} ${short(Number(values[up.name]))}`);
    pad.setAttribute("aria-valuenow", String(Math.round(100 * a)));
  };
  const put = (a: number, b: number, live: boolean) => {
    const within = (c: Control, share: number) => Number((c.low + Math.min(1, Math.max(0, share)) * (c.high - c.low)).toFixed(3));
    set(across.name, within(across, a), true);
    set(up.name, within(up, b), live);
    place();
  };
  const from = (event: PointerEvent, live: boolean) => {
    const box = pad.getBoundingClientRect();
    put((event.clientX - box.left - 8) / (box.width - 16), (box.bottom - event.clientY - 8) / (box.height - 16), live);
  };
  let held = false;
  const pad = svg("svg", {
    viewBox: `0 0 ${S} ${S}`, class: "sx-pad", tabindex: "0", role: "slider", "aria-label": "α and γ together: arrow keys move both", "data-control": "pad",
    "aria-valuemin": "0", "aria-valuemax": "100",
    onpointerdown: (event: PointerEvent) => { held = true; pad.setPointerCapture(event.pointerId); from(event, true); },
    onpointermove: (event: PointerEvent) => held && from(event, true),
    onpointerup: (event: PointerEvent) => { held = false; from(event, false); },
    onkeydown: (event: KeyboardEvent) => {
      const move: Record<string, [number, number]> = { ArrowLeft: [-0.05, 0], ArrowRight: [0.05, 0], ArrowUp: [0, 0.05], ArrowDown: [0, -0.05] };
      if (!(event.key in move)) return;
      event.preventDefault();
      put(Number(values[across.name]) + move[event.key][0], Number(values[up.name]) + move[event.key][1], false);
    },
  }, svg("rect", { x: 1, y: 1, width: S - 2, height: S - 2, rx: 6, class: "sx-padding" }), knob);
  place();
  const element = h("div", { class: "sx-control sx-padbox" }, pad,
    h("p", { class: "sx-note" }, "Across α, upwards γ. Top left is LDA, top right QDA; at the bottom the covariances are spheres."));
  return { element, refresh: place };
}

export function drawDecision(decision: Decision | null, classes: string[], change: (decision: Decision | null, live: boolean) => void): HTMLElement {
  const K = classes.length, id = fresh("decide");
  const start = (): Decision => ({ loss: classes.map((_, i) => classes.map((__, j) => Number(i !== j))), reject: null, priors: null });
  const tick = h("input", { id, type: "checkbox", checked: decision !== null, "data-control": "decide", onchange: () => change(tick.checked ? start() : null, false) });
  const box = h("div", { class: "sx-decision" }, h("div", { class: "sx-control sx-tick" }, tick, h("label", { for: id }, "Decide by losses and priors")));
  if (!decision) return box;
  const cell = (i: number, j: number) => {
    const input = h("input", {
      type: "number", step: "0.5", value: String(decision.loss[i][j]), "aria-label": `Loss of saying ${classes[j]} when it is ${classes[i]}`, "data-loss": `${i},${j}`,
      oninput: () => {
        if (!Number.isFinite(input.valueAsNumber)) return;
        decision.loss[i][j] = input.valueAsNumber;
        change(decision, true);
      },
    });
    return h("td", {}, input);
  };
  box.append(h("div", { class: "sx-scroll" }, h("table", { class: "sx-losses" },
    h("thead", {}, h("tr", {}, h("th", {}, "loss"), ...classes.map((name) => h("th", { scope: "col" }, `→ ${name}`)))),
    h("tbody", {}, ...classes.map((name, i) => h("tr", {}, h("th", { scope: "row" }, name), ...classes.map((_, j) => cell(i, j))))))));
  const rejectId = fresh("reject"), shown = h("output", { for: rejectId }, decision.reject === null ? "never" : short(decision.reject));
  const reject = h("input", {
    id: rejectId, type: "range", min: 0, max: 1.02, step: 0.02, value: String(decision.reject ?? 1.02), "data-control": "reject",
    oninput: () => {
      decision.reject = Number(reject.value) > 1.001 ? null : Number(reject.value);
      shown.textContent = decision.reject === null ? "never" : short(decision.reject);
      change(decision, true);
    },
  });
  box.append(h("div", { class: "sx-control" }, h("label", { for: rejectId }, "reject where it costs more than"), shown, reject));
  const priors = decision.priors ?? classes.map(() => 1 / K);
  const ownId = fresh("priors");
  const own = h("input", { id: ownId, type: "checkbox", checked: decision.priors !== null, "data-control": "priors", onchange: () => { decision.priors = own.checked ? priors : null; change({ ...decision }, false); } });
  box.append(h("div", { class: "sx-control sx-tick" }, own, h("label", { for: ownId }, "priors other than in the data")));
  if (decision.priors) classes.forEach((name, k) => {
    const priorId = fresh("prior"), value = h("output", { for: priorId }, short(decision.priors![k]));
    const slider = h("input", {
      id: priorId, type: "range", min: 0.01, max: 1, step: 0.01, value: String(decision.priors![k]), "data-prior": k,
      oninput: () => {
        decision.priors![k] = Number(slider.value);
        value.textContent = short(Number(slider.value));
        change(decision, true);
      },
    });
    box.append(h("div", { class: "sx-control" }, h("label", { for: priorId }, `weight of ${name}`), value, slider));
  });
  return box;
}
