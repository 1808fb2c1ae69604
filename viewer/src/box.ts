// Boxes of download, upload and ping of each run, from the figures that Python computed.
import { named } from "./chart";
import type { Distribution, RecordData } from "./data";
import { button, colour, el, paletteColour, tableOf } from "./dom";
import { escaped, keep, labelled, pngOf, share, svg } from "./save";
import { short, ticks } from "./statistics";

interface Panel {
  title: string;
  unit: string;
  boxes: (Distribution | null)[];
}

/** The boxes of all records, or of the run `of` alone, with their table; null if there is nothing to draw. */
export function boxes(records: RecordData[], how: string, shows: string, of: string): { element: HTMLElement; draw(): void } | null {
  const panels: Panel[] = [
    { title: "Download", unit: "Mbit/s", boxes: records.map((one) => one.goodput.down) },
    { title: "Upload", unit: "Mbit/s", boxes: records.map((one) => one.goodput.up) },
    { title: "Ping", unit: "ms", boxes: records.map((one) => one.summary.latency.loaded) },
  ].filter((panel) => panel.boxes.some((box) => box !== null));
  if (panels.length === 0) return null;
  const place = el("div", { class: "boxes" });
  const picture = () => drawn(panels, records, Math.min(900, Math.max(320, place.clientWidth)));
  const image = el("img", { alt: `Boxes. ${shows} The table below has the figures.` });
  place.append(image);
  const draw = () => {
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture())}`;
  };
  const tools = el(
    "div",
    { class: "tools", role: "group", "aria-label": named("Files of the boxes", of) },
    button("PNG", () => void pngOf(picture()).then((blob) => keep(blob, "boxes.png")), { "aria-label": named("Save boxes as PNG", of) }),
    button("SVG", () => keep(new Blob([picture()], { type: "image/svg+xml" }), "boxes.svg"), { "aria-label": named("Save boxes as SVG", of) }),
  );
  const element = el(
    "section",
    { class: "chart", "aria-label": named("Spread", of) },
    el("div", { class: "head" }, el("h4", {}, "Spread of throughput and ping"), tools),
    el("p", { class: "shows" }, shows),
    place,
    el("p", { class: "how" }, `How to read it: ${how}`),
    el("details", {}, el("summary", {}, "Table of what is shown"), ...panels.map((panel) => table(panel, records))),
  );
  return { element, draw };
}

function table(panel: Panel, records: RecordData[]): HTMLElement {
  const rows = panel.boxes.flatMap((box, at) => {
    if (box === null) return [];
    const values = [box.mean, box.min, box.p5, box.p25, box.median, box.p75, box.p95, box.max];
    return [[records[at]?.name ?? "", ...values.map(short)]];
  });
  const headings = ["run", "mean", "min", "p5", "p25", "median", "p75", "p95", "max"];
  return tableOf(`${panel.title}, ${panel.unit}`, headings, rows);
}

function drawn(panels: Panel[], records: RecordData[], width: number): string {
  const parts: string[] = [];
  let top = 8;
  for (const panel of panels) {
    parts.push(text(8, top + 14, `${panel.title}, ${panel.unit}`, "ink", 'font-weight="600"'));
    top += 24;
    // A few very long pings take the mean beyond what 95 % of them took.
    const range: [number, number] = [0, Math.max(...panel.boxes.map((box) => (box ? Math.max(box.p95, box.mean) * 1.15 : 0)), 1e-9)];
    const bottom = top + records.length * ROW;
    const scale = labelled(ticks(range, false), (value, label) => {
      const x = place(value, range, width);
      const line = `<line x1="${x}" x2="${x}" y1="${top}" y2="${bottom}" stroke="${colour("grid")}"/>`;
      return line + text(x, bottom + 14, label, "quiet", 'text-anchor="middle"');
    });
    parts.push(...scale);
    panel.boxes.forEach((box, at) => {
      const name = records[at]?.name ?? "";
      parts.push(text(8, top + at * ROW + 14, name.length > 90 ? `${name.slice(0, 90)}\u2026` : name, "quiet", ""));
      parts.push(box ? oneBox(box, top + at * ROW + 20, range, width, at) : text(16, top + at * ROW + 34, "none", "quiet", ""));
    });
    top = bottom + 30;
  }
  return svg(width, top, parts);
}

function oneBox(box: Distribution, y: number, range: [number, number], width: number, at: number): string {
  const [p5, p25, median, p75, p95, mean] = [box.p5, box.p25, box.median, box.p75, box.p95, box.mean].map((value) => place(value, range, width)) as [number, number, number, number, number, number];
  const tint = paletteColour(at);
  const middle = y + 9;
  return [
    `<line x1="${p5}" x2="${p95}" y1="${middle}" y2="${middle}" stroke="${tint}" stroke-width="1.5"/>`,
    ...[p5, p95].map((x) => `<line x1="${x}" x2="${x}" y1="${y + 4}" y2="${y + 14}" stroke="${tint}" stroke-width="1.5"/>`),
    `<rect x="${p25}" y="${y}" width="${Math.max(1, p75 - p25)}" height="18" fill="${tint}" fill-opacity="0.35" stroke="${tint}"/>`,
    `<line x1="${median}" x2="${median}" y1="${y}" y2="${y + 18}" stroke="${colour("ink")}" stroke-width="2.5"/>`,
    `<circle cx="${mean}" cy="${middle}" r="3.5" fill="${colour("paper")}" stroke="${colour("ink")}"/>`,
  ].join("");
}

const place = (value: number, range: [number, number], width: number) => 12 + (width - 28) * share(value, range, false);

function text(x: number, y: number, words: string, tint: string, more: string): string {
  return `<text x="${x}" y="${y}" fill="${colour(tint)}" ${more}>${escaped(words)}</text>`;
}

const ROW = 44;
