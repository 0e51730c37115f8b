// How messages travel: through a WebSocket that is opened again when it breaks, or through a notebook's kernel.

export type Message = Record<string, unknown>;
export interface Transport {
  send(message: Message): void;
  onMessage: (message: Message) => void;
  onState: (connected: boolean) => void;
  open(): void;
  close(): void;
}

export class SocketTransport implements Transport {
  onMessage: (message: Message) => void = () => {};
  onState: (connected: boolean) => void = () => {};
  private socket: WebSocket | null = null;
  private wait = 250;
  private ended = false;

  constructor(private address: string) {}

  open(): void {
    const socket = new WebSocket(this.address);
    this.socket = socket;
    socket.onopen = () => {
      this.wait = 250;
      this.onState(true);
    };
    socket.onmessage = (event) => this.onMessage(JSON.parse(event.data as string));
    socket.onclose = () => {
      if (this.ended) return;
      this.onState(false);
      setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(4000, this.wait * 1.6);
    };
  }

  send(message: Message): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  close(): void {
    this.ended = true;
    this.socket?.close();
  }
}

interface WidgetModel {
  send(content: unknown): void;
  on(name: string, callback: (message: Message) => void): void;
  off(name: string, callback: (message: Message) => void): void;
  get(name: string): unknown;
}

export class KernelTransport implements Transport {
  onMessage: (message: Message) => void = () => {};
  onState: (connected: boolean) => void = () => {};
  private heard = (message: Message) => this.onMessage(message);

  constructor(private model: WidgetModel) {}

  open(): void {
    this.model.on("msg:custom", this.heard);
    this.onState(true);
  }

  send(message: Message): void {
    this.model.send(message);
  }

  close(): void {
    this.model.off("msg:custom", this.heard);
  }
}
