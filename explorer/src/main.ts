// Two entrances to the same explorer: a page of its own, and a widget in a notebook (anywidget's `render`).

import { App } from "./app";
import "./style.css";
import { KernelTransport, SocketTransport } from "./transport";

interface WidgetModel {
  send(content: unknown): void;
  on(name: string, callback: (message: Record<string, unknown>) => void): void;
  off(name: string, callback: (message: Record<string, unknown>) => void): void;
  get(name: string): unknown;
}

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const root = document.createElement("div");
  root.classList.add("sx-embedded");
  root.style.height = `${Number(model.get("height"))}px`;
  el.append(root);
  const transport = new KernelTransport(model);
  new App(root, transport, String(model.get("family")));
  return () => transport.close();
}

export default { render };

const page = document.getElementById("separatrix-explorer");
if (page) {
  const address = new URL("socket", location.href);
  address.protocol = "ws:";
  address.hash = "";
  new App(page, new SocketTransport(address.href), "logistic");
}
