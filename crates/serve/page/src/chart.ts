// Latency over time as an SVG picture.

import { LENGTH, PHASES, type Ping, type Phase } from "./measure.js";
import { quantile } from "./statistics.js";

const LEFT = 44;
const BOTTOM = 22;
const TOP = 8;

/** Draws all pings so far. The scale follows the pings; a few far ones stand at the upper edge. */
export function draw(svg: SVGSVGElement, pings: readonly Ping[]): void {
  const { width, height } = svg.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const top = ceiling(quantile(pings.map((ping) => ping.ms), 0.99) * 1.2);
  const x = (t: number) => LEFT + (t / LENGTH) * (width - LEFT - 8);
  const y = (ms: number) => TOP + (1 - Math.min(ms / top, 1)) * (height - TOP - BOTTOM);
  const parts: Element[] = [];
  for (const ms of [0, top / 4, top / 2, (3 * top) / 4, top]) {
    parts.push(node("line", { class: "grid", x1: LEFT, x2: width, y1: y(ms), y2: y(ms) }));
    parts.push(label(LEFT - 6, y(ms) + 4, "end", String(ms)));
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
  for (const ping of pings) {
    parts.push(node("circle", { class: ping.phase, cx: x(ping.t), cy: y(ping.ms), r: 2.5 }));
  }
  svg.replaceChildren(...parts);
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
