// What all charts of the page share: the time that is shown, the span that is marked, and what is filtered out.
import type { Line } from "./lines";

/** A span of time in seconds. */
export interface Span {
  from: number;
  to: number;
}

export class View {
  shown: Span;
  marked: Span | null = null;
  /** What dragging over a chart does. */
  dragging: "zoom" | "mark" = "zoom";
  private readonly hidden = new Set<string>();
  private readonly listeners: (() => void)[] = [];
  private waiting = false;

  /** A view of the whole of `all`. */
  constructor(public all: Span) {
    this.shown = all;
  }

  /** Calls `listener` after every change. */
  listen(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Shows a span: within the run, and no shorter than a millisecond. */
  show(from: number, to: number): void {
    const length = Math.min(Math.max(to - from, MIN_SPAN_S), this.all.to - this.all.from);
    const start = Math.min(Math.max(from, this.all.from), this.all.to - length);
    this.shown = { from: start, to: start + length };
    this.changed();
  }

  /** The whole is `all` from now on, and is shown if the whole was. */
  extend(all: Span): void {
    const whole = this.shown === this.all;
    this.all = all;
    if (whole) this.reset();
    else this.show(this.shown.from, this.shown.to);
  }

  /** Makes the span that is shown `factor` times as long, around the time `at`. */
  zoom(factor: number, at = (this.shown.from + this.shown.to) / 2): void {
    this.show(at - (at - this.shown.from) * factor, at + (this.shown.to - at) * factor);
  }

  /** Moves the span that is shown by a share of its length. */
  pan(share: number): void {
    const by = (this.shown.to - this.shown.from) * share;
    this.show(this.shown.from + by, this.shown.to + by);
  }

  reset(): void {
    this.shown = this.all;
    this.changed();
  }

  mark(span: Span | null): void {
    this.marked = span && span.to > span.from ? span : null;
    this.changed();
  }

  drag(mode: "zoom" | "mark"): void {
    this.dragging = mode;
    this.changed();
  }

  /** Shows or hides all lines of a kind, such as `service BE` or `direction up`. */
  filter(kind: string, shown: boolean): void {
    if (shown) this.hidden.delete(kind);
    else this.hidden.add(kind);
    this.changed();
  }

  /** Whether the filters let a line through. */
  lets(line: Line): boolean {
    return !kindsOf(line).some((kind) => this.hidden.has(kind));
  }

  /** Tells all listeners, once for all changes until the next frame. */
  private changed(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      for (const listener of this.listeners) listener();
    });
  }
}

/** The kinds by which a line can be filtered. */
export function kindsOf(line: { service: string; direction?: string }): string[] {
  const kinds = [];
  if (line.service) kinds.push(`service ${line.service}`);
  if (line.direction) kinds.push(`direction ${line.direction}`);
  return kinds;
}

const MIN_SPAN_S = 0.001;
