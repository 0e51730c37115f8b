// One model on the points: its menu and controls, the plane, the status of the fit, and all that is shown of it.

import type { App } from "./app";
import { drawChart, drawConfusion, drawTable, rocChart } from "./charts";
import { defaults, drawControls, drawDecision, fresh } from "./controls";
import { h } from "./dom";
import { Plot } from "./plot";
import type { Chart, Extra, Fact, Family, FitReply, Frame, Probe, Table } from "./types";

const GRID = 101, DRAFT = 61, PATIENCE = 320, DETAILS = 120;
const GOOD = new Set(["EXACT", "SEPARATES", "SAMPLED", "CONVERGED", "STATIONARY", "LEVEL"]);

export class Panel {
  readonly element: HTMLElement;
  readonly plot: Plot;
  private menu: HTMLSelectElement;
  private about = h("p", { class: "sx-about" });
  private status = h("div", { class: "sx-status", role: "status" });
  private readout = h("p", { class: "sx-readout", "aria-live": "off" }, "\u00a0");
  private controls = h("div");
  private decision = h("div");
  private details = h("div", { class: "sx-details" });
  private film = h("div", { class: "sx-film" });
  private sent = 0;
  private sentAt = 0;
  private shown = 0;
  private changes: number[] = []; // when what was not sent yet was changed
  private sentChanges: number[] = [];
  private detailed = 0;
  private later = 0;
  private pending = false;
  private draft = false;
  private timer = 0;
  private playing = 0;
  reply: FitReply | null = null;
  latencies: number[] = []; // milliseconds from a change to the frame that shows its boundary: for measurements

  constructor(private app: App, readonly index: number) {
    const id = fresh("family"), help = fresh("help");
    this.menu = h("select", { id, "data-family": index, onchange: () => this.choose(this.menu.value) });
    this.plot = new Plot(`Points and regions, panel ${index + 1}`, help);
    this.element = h("section", { class: "sx-panel", "aria-label": `Panel ${index + 1}` },
      h("div", { class: "sx-stage" },
        h("div", { class: "sx-head" }, h("label", { for: id, class: "sx-hidden" }, `Classifier of panel ${index + 1}`), this.menu, this.status),
        this.plot.element,
        h("p", { id: help, class: "sx-hidden" }, "Arrow keys move a cursor, Enter adds a point there. N and P go through the points; then arrow keys move the point, 1 to 9 change its class, plus and minus its weight, Delete removes it, Escape lets go."),
        this.readout),
      h("div", { class: "sx-side" }, this.about, this.controls, this.film, this.decision, this.details));
  }

  get family(): Family {
    return this.app.families.get(this.app.store.models[this.index].family)!;
  }

  fillMenu(): void {
    const groups = new Map<string, HTMLOptGroupElement>();
    for (const family of this.app.families.values()) {
      if (!groups.has(family.group)) groups.set(family.group, h("optgroup", { label: family.group }));
      groups.get(family.group)!.append(h("option", { value: family.name }, family.title));
    }
    this.menu.replaceChildren(...groups.values());
  }

  /** Draw controls anew: after a change of family, of the classes or of a shared state. */
  rebuild(): void {
    const model = this.app.store.models[this.index];
    model.parameters = { ...defaults(this.family), ...model.parameters };
    this.menu.value = model.family;
    this.about.textContent = this.family.about;
    this.controls.replaceChildren(drawControls(this.family, model.parameters, (_, __, live) => this.request(live)));
    this.decision.replaceChildren(drawDecision(this.app.store.decision, this.app.store.classes, (decision, live) => this.app.decide(decision, live)));
    this.stopFilm();
    this.film.replaceChildren();
    if (this.family.film) this.film.append(h("button", { type: "button", "data-film": this.family.film, onclick: () => this.askFilm() },
      this.family.film === "mistakes" ? "Show mistake after mistake" : "Show step after step"));
  }

  choose(family: string): void {
    this.app.store.models[this.index] = { family, parameters: {} };
    this.rebuild();
    this.request(false);
  }

  /** Ask for a fit of what is on the screen now. While one is under way the newest state waits here. */
  request(draft: boolean): void {
    this.draft = draft;
    this.changes.push(performance.now());
    this.pending = true;
    this.stopFilm();
    this.flush();
  }

  flush(): void {
    if (!this.pending || !this.app.connected) return;
    const busy = this.sent !== this.shown, age = performance.now() - this.sentAt;
    clearTimeout(this.timer);
    if (busy && age < PATIENCE) {
      this.timer = window.setTimeout(() => this.flush(), PATIENCE - age);
      return;
    }
    this.pending = false;
    this.sentAt = performance.now();
    this.sentChanges = this.changes;
    this.changes = [];
    this.sent = this.app.send("fit", { ...this.app.stateOf(this.index), grid: this.draft ? DRAFT : GRID });
    this.status.classList.add("sx-busy");
  }

  /** After the connection was lost nothing is under way any more. */
  reset(): void {
    this.shown = this.sent;
    this.pending = true;
  }

  receive(reply: FitReply): void {
    if (reply.id < this.shown) return;
    this.shown = reply.id;
    const waited = reply.id === this.sent ? this.sentChanges : [];
    this.flush(); // the next fit runs while this one is drawn
    if (reply.id === this.sent) {
      this.status.classList.remove("sx-busy");
    }
    this.reply = reply;
    this.clearReadout();
    this.plot.reply = reply;
    this.plot.update(this.app.scene(), this.app.theme, { reply: true });
    requestAnimationFrame((now) => this.latencies.push(...waited.map((since) => Math.max(now, performance.now()) - since)));
    this.drawStatus(reply);
    this.element.dataset.shown = String(reply.id);
    // While a point is dragged the boundary comes first; charts and tables follow a few times a second.
    clearTimeout(this.later);
    const wait = this.draft && !reply.error ? this.detailed + DETAILS - performance.now() : 0;
    if (wait > 0) this.later = window.setTimeout(() => this.renewDetails(), wait);
    else this.renewDetails();
  }

  private renewDetails(): void {
    this.detailed = performance.now();
    if (!this.reply || this.reply.error) this.details.replaceChildren();
    else this.drawDetails(this.reply);
  }

  get idle(): boolean {
    return !this.pending && this.sent === this.shown;
  }

  private drawStatus(reply: FitReply): void {
    if (reply.error) {
      this.status.replaceChildren(h("span", { class: "sx-badge sx-bad" }, "no fit"), h("span", { class: "sx-sentence" }, reply.error));
      return;
    }
    const { fit, measures } = reply, right = `${(100 * measures.accuracy).toFixed(1)} % right`;
    const time = fit.seconds < 1 ? `${(1000 * fit.seconds).toFixed(1)} ms` : `${fit.seconds.toFixed(2)} s`;
    const badge = fit.status && h("span", { class: `sx-badge ${GOOD.has(fit.status) ? "sx-good" : "sx-warn"}`, title: fit.sentence }, fit.status.toLowerCase().replaceAll("_", " "));
    this.status.replaceChildren(...[badge, h("span", {}, right), h("span", { class: "sx-time" }, time)].filter((one) => one !== null) as Node[]);
  }

  private drawDetails(reply: FitReply): void {
    const { theme } = this.app, parts: HTMLElement[] = [];
    const facts = reply.extras.filter((one: Extra): one is Fact => one.type === "fact");
    const rows: [string, string][] = facts.map((one) => [one.name, one.value]);
    if (reply.fit.certificate) rows.unshift(["certificate", reply.fit.certificate.text]);
    if (reply.fit.sentence && !GOOD.has(reply.fit.status ?? "")) rows.unshift(["status", `${reply.fit.sentence} ${reply.fit.detail}`]);
    if (reply.fit.iterations) rows.push(["steps", String(reply.fit.iterations)]);
    if (rows.length) parts.push(h("dl", {}, ...rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
    parts.push(drawConfusion(reply.measures, this.app.store.classes));
    const roc = rocChart(reply.measures);
    if (roc) parts.push(drawChart(roc, theme));
    for (const one of reply.extras) {
      if (one.type === "chart") parts.push(drawChart(one as Chart, theme));
      if (one.type === "table") parts.push(drawTable(one as Table));
    }
    this.details.replaceChildren(...parts);
  }

  showProbe(probe: Probe, at: [number, number]): void {
    const { classes } = this.app.store, name = probe.action < 0 ? "reject" : classes[probe.action];
    let text = `${at[0].toPrecision(3)}, ${at[1].toPrecision(3)}: ${name}`;
    if (probe.probabilities) text += ` · ${Object.entries(probe.probabilities).map(([k, p]) => `${classes[Number(k)]} ${p.toFixed(3)}`).join(", ")}`;
    if (probe.score !== null) text += ` · score ${Number(probe.score).toPrecision(3)}`;
    if (probe.distance !== null) text += ` · distance ${Math.abs(probe.distance).toPrecision(3)}`;
    this.readout.textContent = text;
  }

  clearReadout(): void {
    this.readout.textContent = "\u00a0";
  }

  private askFilm(): void {
    this.app.ask("film", { ...this.app.stateOf(this.index), grid: DRAFT }).then((reply) => {
      if (reply.error) this.app.say(String(reply.error));
      else this.play(reply.frames as Frame[]);
    });
  }

  private play(frames: Frame[]): void {
    this.stopFilm();
    if (!frames.length) {
      this.app.say("There is no step to show.");
      return;
    }
    const caption = h("p", { class: "sx-note", "aria-live": "polite" });
    const slider = h("input", { type: "range", min: 0, max: frames.length - 1, step: 1, value: "0", "aria-label": "Step", "data-film-slider": "", oninput: () => { pause(); show(Number(slider.value)); } });
    const show = (k: number) => {
      slider.value = String(k);
      caption.textContent = frames[k].caption;
      this.plot.frame = frames[k];
      this.plot.schedule();
    };
    const pause = () => {
      clearInterval(this.playing);
      this.playing = 0;
      button.textContent = "Play";
    };
    const run = () => {
      if (Number(slider.value) >= frames.length - 1) show(0);
      button.textContent = "Pause";
      this.playing = window.setInterval(() => {
        const next = Number(slider.value) + 1;
        if (next >= frames.length) pause();
        else show(next);
      }, Math.max(60, Math.min(600, 6000 / frames.length)));
    };
    const button = h("button", { type: "button", onclick: () => (this.playing ? pause() : run()) }, "Play");
    this.film.querySelector(".sx-player")?.remove();
    this.film.append(h("div", { class: "sx-player" }, button, slider, h("button", { type: "button", onclick: () => this.stopFilm() }, "Close"), caption));
    show(0);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) pause();
    else run();
  }

  private stopFilm(): void {
    clearInterval(this.playing);
    this.playing = 0;
    if (!this.plot.frame) return;
    this.plot.frame = null;
    this.film.querySelector(".sx-player")?.remove();
    this.plot.schedule();
  }
}
