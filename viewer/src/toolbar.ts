// What all charts of a page have in common: the bar above them, and when they are drawn anew.
import { button, el, switchOff, toggle } from "./dom";
import { atStep } from "./statistics";
import { kindsOf, type View } from "./view";

/** Time and filters of all charts. */
export function fillBar(bar: HTMLElement, view: View, lines: { service: string; direction?: string }[]): void {
  const shown = el("span", { class: "shown", "aria-live": "off" });
  const modes = (["zoom", "mark"] as const).map((mode) =>
    button(mode === "zoom" ? "Drag zooms" : "Drag marks a span", () => view.drag(mode), { "data-mode": mode }),
  );
  const clear = button("Clear the mark", () => view.mark(null));
  const tell = () => {
    const { from, to } = view.shown;
    const step = Math.min((to - from) / 10, 0.01);
    shown.textContent = `${atStep(from, step)} s to ${atStep(to, step)} s`;
    for (const one of modes) one.setAttribute("aria-pressed", String(one.dataset["mode"] === view.dragging));
    switchOff(clear, view.marked === null);
  };
  view.listen(tell);
  tell();
  bar.append(
    button("Zoom in", () => view.zoom(0.5)),
    button("Zoom out", () => view.zoom(2)),
    button("Earlier", () => view.pan(-0.5)),
    button("Later", () => view.pan(0.5)),
    button("Whole run", () => view.reset()),
    ...modes,
    clear,
    shown,
  );
  const kinds = [...new Set(lines.flatMap(kindsOf))].sort();
  if (kinds.length > 1) {
    const filters: HTMLElement[] = kinds.map((kind) => {
      const name = FILTERS[kind] ?? kind.replace(/^service /, "");
      const what = kind.startsWith("service ") ? `Lines of the service class ${name} (DSCP)` : `Lines of the ${name.toLowerCase()}`;
      return toggle(name, true, (on) => view.filter(kind, on), { title: what });
    });
    const classes = kinds.findIndex((kind) => kind.startsWith("service "));
    if (classes >= 0) filters.splice(classes, 0, el("span", { class: "quiet" }, "Service classes"));
    bar.append(el("span", { class: "filters", role: "group", "aria-label": "Lines that are shown" }, ...filters));
  }
}

/** Draws anew when the window, the colours or the medium change. */
export function keepUp(sections: { draw(now?: boolean): void }[]): void {
  const draw = (now = false) => {
    for (const section of sections) section.draw(now);
  };
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) requestAnimationFrame(() => draw());
    width = innerWidth;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  const root = document.documentElement;
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    draw(true);
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    draw();
  });
}

const FILTERS: Record<string, string> = { "direction down": "Download", "direction up": "Upload" };
