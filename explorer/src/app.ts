// The whole explorer: tools, data, panels, and the conversation with the library, which does all arithmetic.

import { fresh } from "./controls";
import { h, svg } from "./dom";
import { picture, raster, save, table } from "./exports";
import { Panel } from "./panel";
import type { Scene } from "./plot";
import { packed, Store, unpacked } from "./store";
import { markerPath, readTheme, type Theme } from "./theme";
import type { Message, Transport } from "./transport";
import type { DatasetReply, Decision, Family, FitReply, Hello, Probe, Shared } from "./types";

type Tool = "draw" | "paint" | "relabel" | "weight" | "erase";
const TOOLS: [Tool, string, string][] = [
  ["draw", "Draw and drag", "Click to add a point, drag a point to move it"],
  ["paint", "Paint", "Drag to scatter points"],
  ["relabel", "Relabel", "Click or drag over points to give them the chosen class"],
  ["weight", "Weight", "Click points to make them count 2, 5, 10, 0 or 1 times"],
  ["erase", "Erase", "Click or drag over points to delete them"],
];
const WEIGHTS = [1, 2, 5, 10, 0];
const MOST_CLASSES = 6;

export class App {
  readonly store = new Store();
  readonly families = new Map<string, Family>();
  theme!: Theme;
  connected = false;
  panels: Panel[] = [];
  private hello: Hello | null = null;
  private next = 1;
  private sentRevision = -1;
  private asked = new Map<number, (reply: Message) => void>();
  private tool: Tool = "draw";
  private label = 0;
  private held: number[] = [];
  private selected = -1;
  private cursor: [number, number] | null = null;
  private probing = 0;
  private tools = h("div", { class: "sx-group", role: "radiogroup", "aria-label": "Tool" });
  private swatches = h("div", { class: "sx-group", role: "radiogroup", "aria-label": "Class" });
  private datasets = h("select", { id: fresh("data"), "data-control": "dataset", onchange: () => this.load(this.datasets.value) });
  private columns = h("div", { class: "sx-columns" });
  private undoButton = h("button", { type: "button", onclick: () => this.travel(this.store.undo()), title: "Ctrl+Z" }, "Undo");
  private redoButton = h("button", { type: "button", onclick: () => this.travel(this.store.redo()), title: "Ctrl+Shift+Z" }, "Redo");
  private note = h("p", { class: "sx-message", role: "status" });
  private lost = h("p", { class: "sx-lost", role: "alert", hidden: "" }, "The explorer does not answer. Your points are kept here; the page goes on by itself once it is back.");
  private spoken = h("p", { class: "sx-hidden", "aria-live": "polite" });
  private stage = h("div", { class: "sx-panels" });
  private dialog = h("dialog", { class: "sx-dialog" });

  constructor(readonly root: HTMLElement, private transport: Transport, first: string) {
    root.classList.add("separatrix-explorer");
    (root as unknown as { explorer: App }).explorer = this;
    this.store.models = [{ family: first, parameters: {} }, { family: "svm", parameters: {} }];
    this.panels = [new Panel(this, 0), new Panel(this, 1)];
    this.layout();
    this.theme = readTheme(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.theme = readTheme(root);
      this.drawSwatches();
      this.refresh({ theme: true });
      for (const panel of this.shownPanels) if (panel.reply) panel.receive(panel.reply);
    });
    transport.onMessage = (message) => this.receive(message);
    transport.onState = (connected) => this.connection(connected);
    for (const panel of this.panels) this.listen(panel);
    root.addEventListener("keydown", (event) => this.shortcut(event));
    transport.open();
  }

  get shownPanels(): Panel[] {
    return this.panels.slice(0, this.store.panels);
  }

  // ---- layout

  private layout(): void {
    for (const [tool, title, help] of TOOLS) this.tools.append(h("button", { type: "button", role: "radio", "aria-checked": String(tool === this.tool), "data-tool": tool, title: help, onclick: () => this.pick(tool) }, title));
    const two = h("button", { type: "button", "aria-pressed": "false", "data-action": "two", onclick: () => this.setPanels(this.store.panels === 1 ? 2 : 1) }, "Two models");
    const act = (name: string, title: string, run: () => void) => h("button", { type: "button", "data-action": name, onclick: run }, title);
    const exporting = h("select", { "aria-label": "Export", "data-action": "export", onchange: () => { this.export(exporting.value); exporting.value = ""; } },
      h("option", { value: "" }, "Export…"), h("option", { value: "svg" }, "Picture (SVG)"), h("option", { value: "png" }, "Picture (PNG)"), h("option", { value: "csv" }, "Points (CSV)"));
    this.root.append(
      h("header", { class: "sx-top" },
        h("h1", {}, "separatrix ", h("span", {}, "explorer")),
        h("div", { class: "sx-group" }, h("label", { for: this.datasets.id }, "Data"), this.datasets, act("again", "Draw anew", () => this.again())),
        this.columns,
        h("div", { class: "sx-group sx-right" }, two, act("code", "Copy code", () => this.showCode()), act("share", "Share", () => this.share()), exporting)),
      h("div", { class: "sx-bar", role: "toolbar", "aria-label": "Points" }, this.tools, this.swatches,
        h("div", { class: "sx-group" }, this.undoButton, this.redoButton, act("clear", "Clear", () => this.clear())),
        h("div", { class: "sx-group" }, act("in", "Zoom in", () => this.zoom(0.8)), act("out", "Zoom out", () => this.zoom(1.25)), act("fit", "Show all", () => this.showAll()))),
      this.lost, this.note, this.spoken, this.stage, this.dialog);
    this.drawSwatches();
    this.drawPanels();
  }

  private drawPanels(): void {
    this.stage.replaceChildren(...this.shownPanels.map((panel) => panel.element));
    this.stage.dataset.panels = String(this.store.panels);
    this.root.querySelector("[data-action=two]")?.setAttribute("aria-pressed", String(this.store.panels === 2));
  }

  setPanels(panels: number): void {
    this.store.panels = panels;
    this.drawPanels();
    this.refresh({ view: true, points: true });
    if (panels === 2) {
      this.panels[1].rebuild();
      this.panels[1].request(false);
    }
  }

  private pick(tool: Tool): void {
    this.tool = tool;
    for (const button of this.tools.children) button.setAttribute("aria-checked", String((button as HTMLElement).dataset.tool === tool));
  }

  private drawSwatches(): void {
    const buttons = this.store.classes.map((name, k) => {
      const icon = svg("svg", { viewBox: "-7 -7 14 14", class: `sx-swatch sx-c${k % 6}`, "aria-hidden": "true" }, svg("path", { d: markerPath(k, 5) }));
      return h("button", { type: "button", role: "radio", "aria-checked": String(k === this.label), "data-class": k, title: "Double-click to rename", onclick: () => this.setLabel(k), ondblclick: () => this.rename(k) }, icon, name.length > 18 ? `${name.slice(0, 17)}…` : name);
    });
    this.swatches.replaceChildren(...buttons);
    if (this.store.classes.length < MOST_CLASSES) this.swatches.append(h("button", { type: "button", "data-action": "class", "aria-label": "Another class", onclick: () => this.addClass() }, "+"));
  }

  private setLabel(k: number): void {
    this.label = k;
    this.drawSwatches();
  }

  private addClass(): void {
    const names = ["blue", "orange", "green", "rose", "violet", "brown"];
    this.store.remember();
    this.store.classes = [...this.store.classes, names.find((name) => !this.store.classes.includes(name)) ?? `class ${this.store.classes.length + 1}`];
    this.store.decision = null;
    this.label = this.store.classes.length - 1;
    this.edited(false, true);
  }

  private rename(k: number): void {
    const input = h("input", { type: "text", value: this.store.classes[k], "aria-label": "Name of the class", maxlength: 80 });
    const done = () => {
      this.dialog.close();
      if (!input.value.trim()) return;
      this.store.remember();
      this.store.classes = this.store.classes.map((name, j) => (j === k ? input.value : name));
      this.edited(false, true);
    };
    this.open("Name of the class", input, h("button", { type: "button", onclick: done }, "Rename"));
  }

  private open(title: string, ...content: HTMLElement[]): void {
    this.dialog.replaceChildren(h("h2", {}, title), ...content, h("button", { type: "button", onclick: () => this.dialog.close() }, "Close"));
    if (!this.dialog.open) this.dialog.showModal();
  }

  say(text: string): void {
    this.note.textContent = text;
    setTimeout(() => this.note.textContent === text && (this.note.textContent = ""), 6000);
  }

  // ---- conversation

  private connection(connected: boolean): void {
    this.connected = connected;
    this.lost.hidden = connected;
    this.asked.clear();
    if (!connected) return;
    this.sentRevision = -1;
    if (!this.hello) {
      this.ask("hello", {}).then((reply) => this.begin(reply as unknown as Hello));
      return;
    }
    for (const panel of this.panels) panel.reset();
    for (const panel of this.shownPanels) panel.flush();
  }

  send(kind: string, content: Message): number {
    const id = this.next++;
    this.transport.send({ kind, id, ...content });
    return id;
  }

  ask(kind: string, content: Message): Promise<Message> {
    const id = this.send(kind, content);
    return new Promise((resolve) => this.asked.set(id, resolve));
  }

  private receive(message: Message): void {
    const id = Number(message.id), waiting = this.asked.get(id);
    if (waiting) {
      this.asked.delete(id);
      waiting(message);
    } else if (message.kind === "fit") this.panels[Number(message.panel ?? 0)].receive(message as unknown as FitReply);
  }

  /** The state of a panel as a message: all points if others than the last were sent, else only those that moved. */
  stateOf(panel: number): Message {
    const { store } = this;
    let points: Message = { points: store.points };
    if (this.sentRevision >= 0 && store.moved) points = { moved: [...store.moved.keys()].map((i) => [i, store.points.x[i], store.points.y[i]]) };
    this.sentRevision = store.revision;
    store.moved = new Map();
    const { classes, axes, view, truth, decision } = store;
    return { panel, ...points, classes, axes, view, truth, decision, model: store.models[panel] };
  }

  private async begin(hello: Hello): Promise<void> {
    this.hello = hello;
    for (const family of hello.families) this.families.set(family.name, family);
    if (hello.table) this.datasets.append(h("option", { value: "table" }, `Your table: ${hello.table.target}`));
    this.datasets.append(...hello.datasets.map((one) => h("option", { value: one.name }, one.title)));
    for (const panel of this.panels) panel.fillMenu();
    const text = this.root.isConnected && location.hash.startsWith("#s=") ? location.hash.slice(3) : "";
    if (text) {
      try {
        this.restore(await unpacked(text));
        return;
      } catch {
        this.say("The address holds no points that can be read; here are others.");
      }
    }
    this.load(hello.table ? "table" : "blobs");
  }

  private restore(shared: Shared): void {
    const { points, classes, axes, view, truth, models, decision, panels, data } = shared;
    const lengths = [points.x, points.y, points.label, points.weight].map((list) => list.length);
    if (new Set(lengths).size !== 1 || !classes.length || models.some((model) => !this.families.has(model.family))) throw new Error("unreadable");
    Object.assign(this.store, { points, classes, axes, view, truth, models, decision, data, panels: panels === 2 ? 2 : 1 });
    this.datasets.value = "";
    this.store.changed();
    this.drawPanels();
    this.renewed();
  }

  private seed = 0;
  private again(): void {
    this.seed++;
    this.load(this.datasets.value || this.store.data);
  }

  load(name: string, columns?: string[] | null): void {
    this.ask("dataset", { name, columns: columns ?? null, seed: this.seed }).then((message) => {
      const reply = message as unknown as DatasetReply;
      if (reply.error) return this.say(reply.error);
      if (this.store.n) this.store.remember();
      Object.assign(this.store, { points: reply.points, classes: reply.classes, axes: reply.axes, view: reply.view, truth: reply.truth, data: name, decision: null });
      this.store.changed();
      this.datasets.value = name;
      this.drawColumns(name, reply);
      if (reply.left_out) this.say(`${reply.left_out} rows of the table, drawn at random, are not shown.`);
      this.renewed();
    });
  }

  private drawColumns(name: string, reply: DatasetReply): void {
    this.columns.replaceChildren();
    if (!reply.columns || reply.columns.length < 2) return;
    const chosen = Array.isArray(reply.chosen) ? reply.chosen : ["", ""];
    const menus = ["across", "upwards"].map((where, k) => h("select", { "aria-label": `Column ${where}`, "data-column": k },
      h("option", { value: "" }, "discriminant"), ...reply.columns!.map((column) => {
        const option = h("option", { value: column }, column);
        option.selected = column === chosen[k];
        return option;
      })));
    for (const [k, menu] of menus.entries()) menu.addEventListener("change", () => {
      const other = menus[1 - k];
      if (!menu.value) return this.load(name, null);
      if (!other.value) other.value = reply.columns!.find((column) => column !== menu.value)!;
      this.load(name, menus.map((one) => one.value));
    });
    this.columns.append(...menus);
  }

  private renewed(): void {
    this.label = Math.min(this.label, this.store.classes.length - 1);
    this.selected = -1;
    this.cursor = null;
    this.drawSwatches();
    for (const panel of this.shownPanels) {
      panel.plot.reply = null;
      panel.rebuild();
    }
    this.refresh({ view: true, points: true });
    for (const panel of this.shownPanels) panel.request(false);
  }

  // ---- changes

  scene(): Scene {
    const { points, view, axes } = this.store;
    return { points, view, axes, selected: this.selected, cursor: this.cursor, held: this.held };
  }

  refresh(changed: { points?: boolean; view?: boolean; theme?: boolean }): void {
    for (const panel of this.shownPanels) panel.plot.update(this.scene(), this.theme, changed);
    this.undoButton.disabled = !this.store.canUndo;
    this.redoButton.disabled = !this.store.canRedo;
  }

  private edited(draft: boolean, classes = false): void {
    if (classes) {
      this.drawSwatches();
      this.store.changed();
      for (const panel of this.shownPanels) panel.rebuild();
    }
    this.refresh({ points: true });
    for (const panel of this.shownPanels) panel.request(draft);
  }

  decide(decision: Decision | null, live: boolean): void {
    this.store.decision = decision;
    if (!live) for (const panel of this.shownPanels) panel.rebuild();
    for (const panel of this.shownPanels) panel.request(live);
  }

  private travel(done: boolean): void {
    if (!done) return;
    this.selected = -1;
    if (this.store.decision && this.store.decision.loss.length !== this.store.classes.length) this.store.decision = null;
    this.label = Math.min(this.label, this.store.classes.length - 1);
    this.edited(false, true);
    this.refresh({ view: true });
  }

  private clear(): void {
    this.store.remember();
    this.store.remove(this.store.points.x.map((_, i) => i));
    this.store.truth = null;
    this.selected = -1;
    this.edited(false);
  }

  private zoom(factor: number): void {
    const wider = ([low, high]: [number, number]): [number, number] => {
      const middle = (low + high) / 2, half = ((high - low) / 2) * factor;
      return [middle - half, middle + half];
    };
    this.store.view = { x: wider(this.store.view.x), y: wider(this.store.view.y) };
    this.viewed();
  }

  private showAll(): void {
    const range = (values: number[]): [number, number] => {
      let low = Infinity, high = -Infinity;
      for (const v of values) { low = Math.min(low, v); high = Math.max(high, v); }
      const margin = 0.12 * (high - low) || 1;
      return values.length ? [low - margin, high + margin] : [-3, 3];
    };
    this.store.view = { x: range(this.store.points.x), y: range(this.store.points.y) };
    this.viewed();
  }

  private viewed(): void {
    this.refresh({ view: true });
    for (const panel of this.shownPanels) panel.request(false);
  }

  // ---- pointers and keys

  private listen(panel: Panel): void {
    const { plot } = panel, { canvas } = plot;
    let last: [number, number] | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      canvas.focus({ preventScroll: true });
      this.cursor = null;
      this.selected = -1;
      last = plot.at(event);
      this.press(panel, last, event.pointerType === "touch" ? 18 : 10);
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = plot.at(event);
      if (last && event.buttons) {
        for (const one of event.getCoalescedEvents?.() ?? []) if (this.tool !== "draw") this.drag(panel, plot.at(one), last, event.pointerType === "touch" ? 18 : 10);
        this.drag(panel, at, last, event.pointerType === "touch" ? 18 : 10);
        last = at;
      } else this.probe(panel, at);
    });
    const release = () => {
      if (!last) return;
      last = null;
      this.held = [];
      this.edited(false);
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => panel.clearReadout());
    canvas.addEventListener("keydown", (event) => this.key(panel, event));
    canvas.addEventListener("blur", () => {
      this.cursor = null;
      this.selected = -1;
      this.refresh({});
    });
  }

  private press(panel: Panel, at: [number, number], reach: number): void {
    const found = panel.plot.hit(...at, reach);
    this.store.remember();
    if (this.tool === "draw") {
      const place = found >= 0 ? found : this.store.add(...panel.plot.toPlane(...at), this.label);
      this.held = [place];
      this.edited(true);
    } else if (this.tool === "weight") {
      if (found >= 0) this.weigh(found, WEIGHTS[(WEIGHTS.indexOf(this.store.points.weight[found]) + 1) % WEIGHTS.length]);
    } else this.drag(panel, at, null, reach);
  }

  private drag(panel: Panel, at: [number, number], last: [number, number] | null, reach: number): void {
    const { store } = this;
    if (this.tool === "draw") {
      for (const i of this.held) store.move(i, ...panel.plot.toPlane(...at));
      this.refresh({});
      for (const one of this.shownPanels) one.request(true);
    } else if (this.tool === "paint") {
      if (last && Math.hypot(at[0] - last[0], at[1] - last[1]) < 4) return;
      const spread = () => 12 * (Math.random() + Math.random() + Math.random() - 1.5);
      store.add(...panel.plot.toPlane(at[0] + spread(), at[1] + spread()), this.label);
      this.edited(true);
    } else {
      const found = panel.plot.hit(...at, reach);
      if (found < 0) return;
      if (this.tool === "erase") store.remove([found]);
      if (this.tool === "relabel") {
        if (store.points.label[found] === this.label) return;
        store.points.label[found] = this.label;
        store.changed();
      }
      if (this.tool !== "weight") this.edited(true);
    }
  }

  private weigh(place: number, weight: number): void {
    this.store.points.weight[place] = weight;
    this.store.changed();
    this.say(`This point counts ${weight} times.`);
    this.edited(false);
  }

  private probe(panel: Panel, at: [number, number]): void {
    const now = performance.now();
    if (now - this.probing < 60 || !panel.idle || !panel.reply || panel.reply.error) return;
    this.probing = now;
    const place = panel.plot.toPlane(...at);
    this.ask("probe", { panel: panel.index, at: place }).then((reply) => {
      if (!reply.error) panel.showProbe(reply as unknown as Probe, place);
    });
  }

  private shortcut(event: KeyboardEvent): void {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    this.travel(event.shiftKey ? this.store.redo() : this.store.undo());
  }

  private key(panel: Panel, event: KeyboardEvent): void {
    const { store } = this, { points, view } = store;
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const size = event.shiftKey ? 0.1 : 0.02, has = this.selected >= 0;
    const describe = () => this.speak(`Point ${this.selected + 1} of ${store.n}, ${store.classes[points.label[this.selected]]}, at ${points.x[this.selected]}, ${points.y[this.selected]}, weight ${points.weight[this.selected]}`);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) {
      const [a, b] = steps[event.key], dx = a * size * (view.x[1] - view.x[0]), dy = b * size * (view.y[1] - view.y[0]);
      if (has) {
        store.remember();
        store.move(this.selected, points.x[this.selected] + dx, points.y[this.selected] + dy);
        this.edited(false);
        describe();
      } else {
        const [x, y] = this.cursor ?? [(view.x[0] + view.x[1]) / 2, (view.y[0] + view.y[1]) / 2];
        this.cursor = [Math.min(view.x[1], Math.max(view.x[0], x + dx)), Math.min(view.y[1], Math.max(view.y[0], y + dy))];
        this.speak(`${this.cursor[0].toPrecision(3)}, ${this.cursor[1].toPrecision(3)}`);
        this.refresh({});
        this.probe(panel, panel.plot.toPixels(...this.cursor));
      }
    } else if ((event.key === "Enter" || event.key === " ") && !has) {
      store.remember();
      const at = this.cursor ?? [(view.x[0] + view.x[1]) / 2, (view.y[0] + view.y[1]) / 2];
      store.add(at[0], at[1], this.label);
      this.speak(`Added a point of ${store.classes[this.label]}`);
      this.edited(false);
    } else if ((event.key === "n" || event.key === "p") && store.n) {
      this.cursor = null;
      this.selected = (this.selected + (event.key === "n" ? 1 : store.n - (has ? 1 : 0)) + store.n) % store.n;
      describe();
      this.refresh({});
    } else if ((event.key === "Delete" || event.key === "Backspace") && has) {
      store.remember();
      store.remove([this.selected]);
      this.selected = Math.min(this.selected, store.n - 1);
      this.speak("Deleted");
      this.edited(false);
    } else if (/^[1-9]$/.test(event.key) && Number(event.key) <= store.classes.length) {
      this.setLabel(Number(event.key) - 1);
      if (has) {
        store.remember();
        points.label[this.selected] = this.label;
        store.changed();
        this.edited(false);
        describe();
      }
    } else if ((event.key === "+" || event.key === "-") && has) {
      store.remember();
      const at = Math.max(0, [0, 1, 2, 5, 10].indexOf(points.weight[this.selected]));
      this.weigh(this.selected, [0, 1, 2, 5, 10][Math.min(4, Math.max(0, at + (event.key === "+" ? 1 : -1)))]);
      describe();
    } else if (event.key === "Escape") {
      this.selected = -1;
      this.cursor = null;
      this.refresh({});
    } else return;
    event.preventDefault();
  }

  private speak(text: string): void {
    this.spoken.textContent = text;
  }

  // ---- what leaves the page

  private async showCode(): Promise<void> {
    const texts: string[] = [];
    for (const panel of this.shownPanels) {
      const reply = await this.ask("code", { ...this.stateOf(panel.index), grid: 61 });
      if (reply.error) return this.say(String(reply.error));
      texts.push(String(reply.code));
    }
    const text = texts.join("\n\n# The second panel\n");
    const copy = h("button", { type: "button", onclick: () => this.copy(text, copy) }, "Copy");
    this.open("Python code of what is on the screen", h("pre", { tabindex: "0" }, text), copy);
  }

  private async copy(text: string, button: HTMLElement): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select the text to copy it";
    }
  }

  private async share(): Promise<void> {
    const hash = `#s=${await packed(this.store.shared())}`;
    history.replaceState(null, "", hash);
    const copy = h("button", { type: "button", onclick: () => this.copy(location.href, copy) }, "Copy the address");
    this.open("Share", h("p", {}, "The address now holds all points and models. It opens on this machine while the explorer runs; elsewhere, put the part from # on behind the address of the explorer there."),
      h("p", { class: "sx-note" }, `${hash.length} characters`), copy);
  }

  private async export(kind: string): Promise<void> {
    if (kind === "csv") return save("points.csv", new Blob([table(this.store)], { type: "text/csv" }));
    for (const panel of this.shownPanels) {
      const text = picture(this.store, panel.reply, this.theme, panel.family.title), name = `separatrix-${panel.family.name}`;
      if (kind === "svg") save(`${name}.svg`, new Blob([text], { type: "image/svg+xml" }));
      if (kind === "png") save(`${name}.png`, await raster(text));
    }
  }
}
