// Charts as files: PNG, SVG and CSV, made in the page and given to the browser to keep.
import type { Phase } from "./data";
import { colour } from "./dom";
import { colourOf, dashOf, lostTicksOf, phaseName, type Picture, type Placing, type Shown, trace } from "./plot";
import type { Line } from "./lines";
import { labels, ticks, timesIn } from "./statistics";
import type { Span } from "./view";

/** The chart as an SVG picture: what the screen has, with title, axes, legend, and `remarks` below it. */
export function svgOf(picture: Picture, title: string, remarks: string[]): string {
  const { shown, y, data } = picture;
  const rows = Math.ceil(shown.lines.length / COLUMNS);
  const foot = TOP + PLOT + BOTTOM + rows * 18;
  const place = placing(picture);
  const parts = [
    `<clipPath id="frame"><rect x="${LEFT}" y="${TOP}" width="${WIDTH}" height="${PLOT}"/></clipPath>`,
    `<text x="${LEFT}" y="16" font-size="15" font-weight="600" fill="${colour("ink")}">${escaped(title)}</text>`,
    ...markedSpan(shown, place),
    ...shown.phases.flatMap((phase) => phaseStart(phase, shown.x, place)),
    ...labelled(ticks(y, shown.log), (value, label) => gridLine(place.y(value), label)),
    ...labelled(ticks([shown.x.from, shown.x.to], shown.xLog), (value, label) => centred(place.x(value), TOP + PLOT + 16, label)),
    ...shown.lines.map((line, number) => path(line, data[0] as number[], data[number + 1] as number[], place)),
    ...lostTicks(shown, place),
    centred(LEFT + WIDTH / 2, TOP + PLOT + 34, shown.xLabel),
    `<text transform="translate(14 ${TOP + PLOT / 2}) rotate(-90)" text-anchor="middle" fill="${colour("quiet")}">${escaped(shown.yLabel)}</text>`,
    ...shown.lines.map((line, number) => legendEntry(line, number)),
    ...remarks.map((text, number) => `<text x="${LEFT}" y="${foot + number * 18}" fill="${colour("quiet")}">${escaped(text)}</text>`),
  ];
  return svg(LEFT + WIDTH + 16, foot + remarks.length * 18, parts);
}

/** A whole SVG file of `parts`, on the page's background. */
export function svg(width: number, height: number, parts: string[]): string {
  const room = `<rect width="${width}" height="${height}" fill="${colour("paper")}"/>`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
  return `${head} font-family="system-ui, sans-serif" font-size="12">${room}${parts.join("")}</svg>`;
}

/** An SVG picture as PNG, with two pixels for each of its own. */
export async function pngOf(text: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth * 2, image.naturalHeight * 2];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture could not be made"))), "image/png");
  });
}

/** Every value of the lines, a row each below the words of the axes, in pieces: one text cannot hold the rows of a large record. */
export function csvOf(lines: Line[], x: string, unit: string): string[] {
  const pieces = [`series,${cell(x)},${cell(unit)}\n`];
  for (const line of lines) {
    const name = cell(line.name);
    for (let from = 0; from < line.t.length; from += PIECE_ROWS) {
      let piece = "";
      for (let at = from; at < Math.min(from + PIECE_ROWS, line.t.length); at++) {
        const value = line.y[at] as number;
        piece += `${name},${Number((line.t[at] as number).toFixed(9))},${Number.isNaN(value) ? "" : value}\n`;
      }
      pieces.push(piece);
    }
  }
  return pieces;
}

/** Gives a file to the browser. */
export function keep(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A short file name made of `title`: letters, of every script with their marks, and digits. */
export function slug(title: string): string {
  // A mark that stands on no letter, such as the one behind an emoji, would be a name that nobody sees.
  const words = title.toLowerCase().normalize("NFC").match(/[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu) ?? [];
  return [...words.join("-")].slice(0, 60).join("").replace(/-$/, "") || "chart";
}

/** `text` in which nothing is markup. */
export function escaped(text: string): string {
  const signs: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  // biome-ignore lint: control characters are not allowed in XML
  return text.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd").replaceAll(/[&<>"']/g, (sign) => signs[sign] as string);
}

function placing({ shown, y }: Picture): Placing {
  return {
    x: (value) => LEFT + WIDTH * share(value, [shown.x.from, shown.x.to], shown.xLog),
    y: (value) => TOP + PLOT * (1 - share(value, y, shown.log)),
  };
}

/** Where a value lies in a range: 0 at its low end, 1 at its high end; what is far outside is brought nearer, for any program. */
export function share(value: number, [low, high]: [number, number], log: boolean): number {
  const found = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.min(Math.max(found, -MAX_SHARE), MAX_SHARE);
}

function path(line: Line, times: number[], values: (number | null | undefined)[], place: Placing): string {
  let steps = "";
  const to = (letter: string) => (x: number, y: number) => (steps += `${letter}${x.toFixed(1)} ${y.toFixed(1)}`);
  trace({ moveTo: to("M"), lineTo: to("L") }, line, times, values, place);
  const dash = dashOf(line).join(" ");
  return `<path d="${steps}" clip-path="url(#frame)" fill="none" stroke="${colourOf(line)}" stroke-width="${line.average ? 2 : 1.2}"${dash ? ` stroke-dasharray="${dash}"` : ""}/>`;
}

function markedSpan({ marked, x }: Shown, place: Placing): string[] {
  if (marked === null) return [];
  const [left, right] = [place.x(Math.max(marked.from, x.from)), place.x(Math.min(marked.to, x.to))];
  return right > left ? [bar(left, right - left, PLOT, colour("marked"))] : [];
}

/** Where a phase begins, and its name if that has room. */
function phaseStart(phase: Phase, x: Span, place: Placing): string[] {
  if (phase.end_s < x.from || phase.start_s > x.to) return [];
  const [left, right] = [place.x(Math.max(phase.start_s, x.from)), place.x(Math.min(phase.end_s, x.to))];
  const name = phaseName(phase);
  const text = `<text x="${left + 4}" y="${TOP - 4}" font-size="11" fill="${colour("quiet")}">${escaped(name)}</text>`;
  return [...(phase.start_s > x.from ? [bar(left, 1, PLOT, colour("phase"))] : []), ...(name.length * LETTER + 8 < right - left ? [text] : [])];
}

/** A tick at the top edge for each lost ping. */
function lostTicks({ lines, x }: Shown, place: Placing): string[] {
  const ticks = lostTicksOf(lines).flatMap(({ lost, top, height, tint }) =>
    Array.from(timesIn(lost, x), (time) => bar(Math.round(place.x(time)), 1, height, tint, top)),
  );
  return [...new Set(ticks)];
}

function bar(left: number, width: number, height: number, tint: string, top = 0): string {
  const y = Number((TOP + top).toFixed(1));
  return `<rect x="${left.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${Number(height.toFixed(1))}" fill="${tint}"/>`;
}

/** What `make` makes of each value of an axis and its label. */
export function labelled(values: number[], make: (value: number, label: string) => string): string[] {
  const texts = labels(values);
  return values.map((value, at) => make(value, texts[at] as string));
}

function gridLine(y: number, label: string): string {
  const line = `<line x1="${LEFT}" x2="${LEFT + WIDTH}" y1="${y}" y2="${y}" stroke="${colour("grid")}"/>`;
  return `${line}<text x="${LEFT - 6}" y="${y + 4}" text-anchor="end" fill="${colour("quiet")}">${label}</text>`;
}

function centred(x: number, y: number, text: string): string {
  return `<text x="${x}" y="${y}" text-anchor="middle" fill="${colour("quiet")}">${escaped(text)}</text>`;
}

function legendEntry(line: Line, number: number): string {
  const x = LEFT + (number % COLUMNS) * (WIDTH / COLUMNS);
  const y = TOP + PLOT + BOTTOM + Math.floor(number / COLUMNS) * 18;
  const dash = dashOf(line).join(" ");
  const sample = `<line x1="${x}" x2="${x + 18}" y1="${y - 4}" y2="${y - 4}" stroke="${colourOf(line)}" stroke-width="2"${dash ? ` stroke-dasharray="${dash}"` : ""}/>`;
  return `${sample}<text x="${x + 24}" y="${y}" fill="${colour("ink")}">${escaped(line.label.slice(0, 60))}</text>`;
}

/** A cell of a CSV file that no spreadsheet takes for a formula. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

const [LEFT, TOP, WIDTH, PLOT, BOTTOM, COLUMNS] = [64, 34, 820, 300, 56, 3];
/** The usual width of a letter in the name of a phase. */
const LETTER = 6.5;
/** Numbers beyond this many frames are too large for some programs. */
const MAX_SHARE = 10_000;
const PIECE_ROWS = 50_000;
