// Latency and throughput over time as SVG pictures.

import { LENGTH, PHASES, type Ping, type Phase, STEP } from "./measure.js";
import type { Direction } from "./session.js";
import { quantile } from "./statistics.js";

const LEFT = 44;
const BOTTOM = 22;
const TOP = 8;

/** Draws all pings so far. The scale follows the pings; a few far ones stand at the upper edge. */
export function drawPings(svg: SVGSVGElement, pings: readonly Ping[]): void {
  const { parts, x, y } = frame(svg, quantile(pings.map((ping) => ping.ms), 0.99));
  for (const ping of pings) {
    parts.push(node("circle", { class: ping.phase, cx: x(ping.t), cy: y(ping.ms), r: 2.5 }));
  }
  svg.replaceChildren(...parts);
}

/** Draws the rates of both directions so far. */
export function drawRates(svg: SVGSVGElement, rates: Record<Direction, readonly number[]>): void {
  const { parts, x, y } = frame(svg, Math.max(...rates.down, ...rates.up, 0));
  for (const direction of ["down", "up"] as const) {
    const points = rates[direction].map((rate, at) => `${x((at + 0.5) * STEP)},${y(rate)}`).join(" ");
    if (points) parts.push(node("polyline", { class: `rate ${direction}`, points }));
  }
  svg.replaceChildren(...parts);
}

/** Axes for values up to `greatest`, and the phases of the test. */
function frame(svg: SVGSVGElement, greatest: number) {
  const { width, height } = svg.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const top = ceiling(greatest * 1.2);
  const x = (t: number) => LEFT + (t / LENGTH) * (width - LEFT - 8);
  const y = (value: number) => TOP + (1 - Math.min(value / top, 1)) * (height - TOP - BOTTOM);
  const parts: Element[] = [];
  for (const value of [0, top / 4, top / 2, (3 * top) / 4, top]) {
    parts.push(node("line", { class: "grid", x1: LEFT, x2: width, y1: y(value), y2: y(value) }));
    parts.push(label(LEFT - 6, y(value) + 4, "end", String(value)));
  }
  for (const t of [0, 8, 16, 24, 32]) {
    parts.push(label(x(t), height - 5, t === LENGTH ? "end" : "middle", `${t} s`));
  }
  let to = 0;
  for (const [phase, seconds] of PHASES) {
    const from = to;
    to += seconds;
    if (phase === "rest") continue;
    const box = { x: x(from), y: TOP, width: x(to) - x(from), height: y(0) - TOP };
    parts.push(node("rect", { class: `band ${phase}`, ...box }));
    parts.push(label((x(from) + x(to)) / 2, TOP + 14, "middle", NAMES[phase]));
  }
  return { parts, x, y };
}

/** A round number above: 1, 2 or 4 times a power of ten, so that its quarters are round too. */
function ceiling(value: number): number {
  if (!(value > 0)) return 4;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 4, 10].find((one) => one * power >= value) ?? 10;
  return Math.max(factor * power, 4);
}

function label(x: number, y: number, anchor: string, text: string): Element {
  const element = node("text", { x, y, "text-anchor": anchor });
  element.textContent = text;
  return element;
}

function node(name: string, attributes: Record<string, string | number>): Element {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

const NAMES: Record<Exclude<Phase, "rest">, string> = {
  idle: "idle",
  down: "download",
  up: "upload",
  both: "both",
};
