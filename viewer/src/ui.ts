// The pages of `weir ui`: the list of records, the form of a new run, runs and records that are watched, sweeps, and the shapers.
import { ask } from "./asking";
import { draw } from "./charts";
import { completions, type QueueWords } from "./completion";
import type { PageData } from "./data";
import { asCommand, el, prose, said, switchOff, writtenOut } from "./dom";
import { editor } from "./editor";
import { remember, remembered } from "./remembered";
import type { Section } from "./sections";
import { shapers } from "./shapers";
import { keepUp } from "./toolbar";

interface Told {
  page: string;
  prefix: string;
  number?: number;
  /** By which the version of a scenario file that is edited is known. */
  mark?: string;
  /** Where the record lies that is watched. */
  record?: string;
  /** How many records one page shows at most. */
  most?: number;
  /** The words of each queue. */
  queues?: Record<string, QueueWords>;
}

const told = JSON.parse(document.getElementById("weir-page")?.textContent ?? "{}") as Told;

function byId<Kind extends HTMLElement>(id: string): Kind {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found as Kind;
}

const viewOf = (places: string[]) => `${told.prefix}/view?${places.map((place) => `record=${encodeURIComponent(place)}`).join("&")}`;

/** What comes of a form: what was asked for, or the sentence that says what is wrong. */
export interface Answer extends Record<string, unknown> {
  error?: string;
  /** Whether there was no answer, which says nothing of the form. */
  silent?: boolean;
}

/** Sends a form. */
export type Send = typeof send;

async function send(place: string, content: unknown): Promise<Answer> {
  const request = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(content) };
  try {
    return await ask<Answer>(`${told.prefix}/${place}`, request);
  } catch (error) {
    return { error: said(error), silent: true };
  }
}

/** Records that a command line names one by one. */
const MAX_WORDS = 100;

/** The list of records: which are shown and chosen, and what is noted of them. */
function records(): void {
  const rows = [...document.querySelectorAll<HTMLTableRowElement>("#rows tr")];
  const search = byId<HTMLInputElement>("search");
  const since = byId<HTMLInputElement>("since");
  const selects = ["test", "link", "queue", "world"].map((id) => byId<HTMLSelectElement>(id));
  const open = byId<HTMLButtonElement>("open");
  const command = byId("command");
  const atFirst = command.textContent;
  const filters = [search, since, ...selects];
  // The address has them: a reader who comes back, or loads the page anew, finds what he left.
  const keep = () => {
    const asked = new URLSearchParams(filters.flatMap(({ id, value }) => (value ? [[id, value]] : [])));
    remember("chosen", chosen().map(placeOf), asked.size ? `#${asked}` : location.pathname + location.search);
  };
  const putBack = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const one of filters) one.value = asked.get(one.id) ?? "";
    const places = remembered("chosen");
    for (const row of rows) {
      const box = row.querySelector("input");
      if (box !== null && places !== null) box.checked = places.includes(placeOf(row));
    }
  };
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = (row.textContent ?? "").toLowerCase();
      const shown =
        words.every((word) => text.includes(word)) &&
        selects.every((one) => !one.value || row.dataset[one.id] === one.value) &&
        (!since.value || (row.dataset["date"] ?? "") >= since.value);
      row.hidden = !shown;
      if (shown) count++;
    }
    const hidden = chosen().filter((row) => row.hidden).length;
    const also = hidden ? `; of the chosen ${hidden} ${hidden === 1 ? "is" : "are"} not shown` : "";
    const says = rows.length > 0 && count === 0 ? "none fits: clear the search or a filter" : `${count} shown`;
    byId("count").textContent = says + also;
  };
  // The list has the latest first; what is compared begins with the earliest, as the command line does: its baseline.
  const chosen = () => rows.filter((row) => row.querySelector("input")?.checked).reverse();
  const tell = () => {
    const found = chosen();
    const shown = rows.filter((row) => !row.hidden && row.dataset["word"] !== undefined).reverse();
    const line = (name: string, some: HTMLTableRowElement[]) => writtenOut([name, ...some.map((row) => row.dataset["word"])].join(" "));
    if (found.length) command.textContent = line("weir report", found);
    else if (rows.length && shown.length === 0) command.textContent = "# none fits: there is nothing to show";
    else if (shown.length === 0 || !filters.some(({ value }) => value)) command.textContent = atFirst;
    else if (shown.length <= MAX_WORDS) command.textContent = line("weir show", shown);
    else command.textContent = `${atFirst}  # all of them, also those that are not shown here`;
  };
  const noted = noting(chosen, filter, tell);
  const choose = () => {
    const found = chosen();
    const most = told.most ?? Infinity;
    open.disabled = found.length === 0 || found.length > most;
    open.textContent = found.length > most ? `Choose ${most} at most` : found.length > 1 ? `Compare ${found.length}` : "Open";
    filter();
    noted();
  };
  const narrow = () => {
    keep();
    filter();
    noted();
  };
  for (const one of filters) one.addEventListener("input", narrow);
  for (const row of rows) {
    row.querySelector("input")?.addEventListener("change", () => {
      keep();
      choose();
    });
    row.querySelector("a")?.setAttribute("href", viewOf([placeOf(row)]));
  }
  open.addEventListener("click", () => location.assign(viewOf(chosen().map(placeOf))));
  whenRestored(() => {
    putBack();
    choose();
  });
}

/** Does `look` once a browser has put what a reader chose before back into a page that he returns to, or shows it first. */
function whenRestored(look: () => void): void {
  addEventListener("pageshow", look);
}

const placeOf = (row: HTMLTableRowElement) => row.dataset["place"] ?? "";
const words = (text: string) => text.split(/\s+/).filter(Boolean);
const cellOf = (row: HTMLTableRowElement, name: string) => row.querySelector<HTMLElement>(`[data-column="${name}"]`);
/** What a cell of the list is about, which it may show otherwise. */
const textOf = (row: HTMLTableRowElement, name: string) => cellOf(row, name)?.dataset["text"] ?? cellOf(row, name)?.textContent ?? "";

function setText(row: HTMLTableRowElement, name: string, text: string): void {
  const cell = cellOf(row, name);
  if (cell === null) return;
  cell.dataset["text"] = text;
  cell.textContent = writtenOut(text);
}

/** The form for notes; the function that it gives takes note of which records are chosen. */
function noting(chosen: () => HTMLTableRowElement[], changed: () => void, otherwise: () => void): () => void {
  const place = byId<HTMLDetailsElement>("noting");
  const form = byId<HTMLFormElement>("note-form");
  const [note, tags] = [form.querySelector("textarea"), form.querySelector("input")];
  const keep = form.querySelector("button");
  const error = byId("note-error");
  if (note === null || tags === null || keep === null) return otherwise;
  // What it showed at first: only what differs from it is to change.
  let old = { note: "", tags: "" };
  const isWritten = () => note.value !== old.note || tags.value !== old.tags;
  const content = () => ({
    records: chosen().map(placeOf),
    note: note.value,
    tags: words(tags.value),
    old_note: old.note,
    old_tags: words(old.tags),
  });
  const wrong = (text: unknown) => {
    error.hidden = text === undefined;
    error.replaceChildren(...prose(text === undefined ? "" : String(text)));
  };
  let asked = 0;
  const tell = async () => {
    const mine = ++asked;
    if (!place.open || chosen().length === 0) return otherwise();
    const answer = await send("note/check", content());
    if (mine !== asked) return;
    wrong(answer.error);
    if (answer["command"] !== undefined) byId("command").replaceChildren(...asCommand(String(answer["command"])));
  };
  const choose = () => {
    const found = chosen();
    const [first] = found;
    const alone = found.length === 1 && first !== undefined;
    const present = {
      note: alone ? textOf(first, "Note") : "",
      tags: alone ? textOf(first, "Tags") : "",
    };
    for (const [field, name] of [[note, "note"], [tags, "tags"]] as const) {
      // What a reader has begun to write stays, for whichever records are chosen then.
      if (field.value !== old[name]) continue;
      field.value = present[name];
      present[name] = field.value;
    }
    old = present;
    const many = `To all ${found.length} chosen records: what is left empty here stays as it is, and tags are added.`;
    byId("note-of").textContent = alone ? `Of ${writtenOut(placeOf(first))}` : found.length ? many : "Choose records below.";
    byId("note-kept").textContent = isWritten() ? "Not kept yet." : "";
    keep.disabled = found.length === 0;
    void tell();
  };
  place.addEventListener("toggle", () => void tell());
  addEventListener("beforeunload", (event) => {
    if (isWritten()) event.preventDefault();
  });
  form.addEventListener("input", () => {
    byId("note-kept").textContent = "";
    void tell();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    byId("note-kept").textContent = "";
    const rows = chosen();
    const sent = { note: note.value, tags: tags.value };
    void send("note", content()).then((answer) => {
      wrong(answer.error);
      if (answer.error !== undefined) return;
      (answer["kept"] as { note: string; tags: string[] }[]).forEach((one, at) => {
        const row = rows[at] as HTMLTableRowElement;
        setText(row, "Note", one.note);
        setText(row, "Tags", one.tags.join(" "));
      });
      changed();
      // What was written meanwhile is not kept.
      old = sent;
      choose();
      if (!isWritten()) byId("note-kept").textContent = "Kept.";
    });
  });
  return choose;
}

function form(): void {
  const place = byId<HTMLFormElement>("form");
  const start = byId<HTMLButtonElement>("start");
  const error = byId("error");
  const content = () => {
    const data = new FormData(place);
    const found: Record<string, unknown> = {};
    for (const key of new Set(data.keys())) found[key] = key === "queue" ? data.getAll(key) : data.get(key);
    return found;
  };
  const wrong = (text: unknown, fields: unknown = []) => {
    error.hidden = text === undefined;
    error.replaceChildren(...prose(text === undefined ? "" : String(text)));
    let queue = 0;
    for (const one of place.querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")) {
      const name = one.name === "queue" ? `queue-${++queue}` : one.name;
      const isWrong = Array.isArray(fields) && fields.includes(name);
      for (const [key, value] of [["aria-invalid", "true"], ["aria-describedby", "error"]] as const) {
        if (isWrong) one.setAttribute(key, value);
        else one.removeAttribute(key);
      }
    }
  };
  let asked = 0;
  const check = async () => {
    const mine = ++asked;
    const answer = await send("check", content());
    if (mine !== asked) return;
    wrong(answer.error, answer["fields"]);
    switchOff(start, answer.error !== undefined && !answer.silent);
    if (!answer.silent) byId("command").replaceChildren(...asCommand(String(answer["command"] ?? "")));
  };
  let timer = 0;
  const offered = byId("queues");
  const offer = ({ target }: Event) => {
    if (!(target instanceof HTMLInputElement) || target.name !== "queue") return;
    const found = completions(target.value, told.queues ?? {});
    offered.replaceChildren(...found.map((value) => el("option", { value })));
  };
  const fields = [...place.querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")];
  const putBack = () => remembered("fields")?.forEach((value, at) => Object.assign(fields[at] ?? {}, { value }));
  place.addEventListener("focusin", offer);
  place.addEventListener("input", (event) => {
    remember("fields", fields.map(({ value }) => value));
    offer(event);
    clearTimeout(timer);
    timer = setTimeout(() => void check(), 250);
  });
  place.addEventListener("submit", (event) => {
    event.preventDefault();
    switchOff(start, true);
    // What a check says that is still under way is of no interest any more.
    asked++;
    void send("start", content()).then((answer) => {
      // It may be tried again: what keeps it from running now, such as other runs, may end.
      switchOff(start, false);
      if (answer.error === undefined) location.assign(`${told.prefix}/runs/${String(answer["number"])}`);
      else wrong(answer.error);
    });
  });
  whenRestored(() => {
    putBack();
    void check();
  });
}

interface State {
  code: number | null;
  /** How it ended; null while it is under way. */
  ended: string | null;
  /** What it waits for; null once it has begun. */
  waits: string | null;
  lines: string[];
  records: { place: string; complete: boolean }[];
}

function run(): void {
  const stop = byId<HTMLButtonElement>("stop");
  stop.addEventListener("click", () => {
    void send(`runs/${told.number}/stop`, {}).then(({ error }) => error !== undefined && byId("state").replaceChildren(...prose(error)));
  });
  const live = drawing();
  const look = async () => {
    const state = await ask<State>(`${told.prefix}/runs/${told.number}/state`);
    byId("output").textContent = state.lines.join("\n");
    const complete = state.records.filter((one) => one.complete).length;
    byId<HTMLProgressElement>("progress").value = complete;
    byId("state").textContent = state.ended ?? state.waits ?? `under way: ${complete === 1 ? "1 record is" : `${complete} records are`} complete`;
    const places = state.records.map((one) => one.place).sort();
    if (places.length) {
      const few = places.length > (told.most ?? Infinity) ? `the first ${told.most} of ${places.length} records` : "";
      const text = state.code === null ? `Look at ${few || "what there is"} so far` : `Open ${few || "the records"}`;
      byId("made").replaceChildren(el("a", { href: viewOf(places.slice(0, told.most)) }, text));
    }
    // The record that is being made; of a run that has ended the latest.
    const latest = state.records.find((one) => !one.complete) ?? state.records[0];
    if (latest !== undefined) await live(latest.place, state.code !== null);
    switchOff(stop, state.code !== null);
    return state.code === null;
  };
  again(look, byId("state"));
}

/** What was drawn of a record, or why nothing could be. */
type Drawn = PageData | { error: string; records?: undefined };

/**
 * Draws the charts of a record as far as it is measured; never while a reader is in them, except at the end. Gives what
 * it has drawn, or why it could not; null where it left what stood there.
 */
function drawing(): (place: string, ended: boolean) => Promise<Drawn | null> {
  const [charts, says] = [byId("live"), byId("live-says")];
  const sections: Section[] = [];
  keepUp(sections);
  let next = 0;
  return async (place, ended) => {
    if (!ended && (performance.now() < next || charts.matches(":hover, :focus-within"))) return null;
    const began = performance.now();
    const found = await ask<Drawn>(`${told.prefix}/live?record=${encodeURIComponent(place)}`);
    if ("error" in found) {
      const stands = sections.length ? "What stands here is what was drawn before, and no more can be drawn" : "Nothing can be drawn yet";
      says.replaceChildren(...prose(`${stands}: ${found.error}`));
    } else {
      sections.splice(0, sections.length, ...(await draw(charts, found)));
      const reached = (found.records[0]?.reached_s ?? 0).toFixed(1);
      says.textContent = ended
        ? `All that was measured, ${reached} s.`
        : `What has been measured in the first ${reached} s. The charts stand still while you point at them or move in them by keyboard.`;
    }
    // A long record takes longer to draw: at most a quarter of the time goes into it.
    next = performance.now() + Math.max(1000, 3 * (performance.now() - began));
    return found;
  };
}

/** A record that is watched while whoever makes it writes it. */
function watch(): void {
  const live = drawing();
  const place = told.record ?? "";
  const state = byId("state");
  const look = async () => {
    const drawn = await live(place, false);
    if (drawn?.records?.[0]?.summary.complete !== true) {
      if (drawn !== null) state.textContent = "error" in drawn ? "cannot be read" : "under way, or cut short";
      return true;
    }
    await live(place, true);
    state.replaceChildren("done: ", el("a", { href: viewOf([place]) }, "open the record"));
    return false;
  };
  again(look, state);
}

/** Looks again and again until `look` says that it is over; one answer that does not come, as while a laptop sleeps, ends nothing. */
function again(look: () => Promise<boolean>, state: HTMLElement): void {
  void look()
    .catch((error: unknown) => {
      state.replaceChildren(...prose(said(error)));
      return true;
    })
    .then((more) => more && setTimeout(() => again(look, state), 700));
}

/** The chart of a store of a sweep: another one is another page, whose address tells which. */
function sweep(): void {
  const form = byId<HTMLFormElement>("form");
  const kind = form.querySelector<HTMLSelectElement>("[name=kind]");
  // What another kind of chart asks for is not sent.
  const fit = () => {
    for (const label of form.querySelectorAll<HTMLElement>("[data-for]")) {
      label.hidden = !label.dataset["for"]?.split(" ").includes(kind?.value ?? "");
      for (const one of label.querySelectorAll("select")) one.disabled = label.hidden;
    }
  };
  kind?.addEventListener("change", fit);
  fit();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const said = [...new FormData(form)].filter(([, value]) => value !== "") as [string, string][];
    location.assign(`${told.prefix}/sweep?${new URLSearchParams(said)}`);
  });
}

const pages: Record<string, () => void> = {
  records,
  new: form,
  run,
  watch,
  scenario: () => editor(send, told.prefix, told.mark ?? ""),
  sweep,
  shapers: () => shapers(told.prefix),
};
pages[told.page]?.();
