// The pages of `weir ui`: the list of records, the form of a new run, and a run that is watched.
import { el } from "./dom";

interface Told {
  page: string;
  prefix: string;
  number?: number;
}

const told = JSON.parse(document.getElementById("weir-page")?.textContent ?? "{}") as Told;

function byId<Kind extends HTMLElement>(id: string): Kind {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found as Kind;
}

const viewOf = (places: string[]) => `${told.prefix}/view?${places.map((place) => `record=${encodeURIComponent(place)}`).join("&")}`;

/** Sends a form; the answer, or the sentence that says what is wrong. */
async function send(place: string, content: unknown): Promise<Record<string, unknown>> {
  const answer = await fetch(`${told.prefix}/${place}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(content),
  });
  return (await answer.json()) as Record<string, unknown>;
}

function records(): void {
  const rows = [...document.querySelectorAll<HTMLTableRowElement>("#rows tr")];
  const search = byId<HTMLInputElement>("search");
  const since = byId<HTMLInputElement>("since");
  const selects = ["test", "link", "world"].map((id) => byId<HTMLSelectElement>(id));
  const open = byId<HTMLButtonElement>("open");
  const command = byId("command");
  const atFirst = command.textContent;
  const texts = rows.map((row) => (row.textContent ?? "").toLowerCase());
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, at) => {
      const shown =
        words.every((word) => texts[at]?.includes(word)) &&
        selects.every((one) => !one.value || row.dataset[one.id] === one.value) &&
        (!since.value || (row.dataset["date"] ?? "") >= since.value);
      row.hidden = !shown;
      if (shown) count++;
    });
    byId("count").textContent = `${count} shown`;
  };
  const chosen = () => rows.filter((row) => row.querySelector("input")?.checked);
  const placeOf = (row: HTMLTableRowElement) => row.dataset["place"] ?? "";
  const choose = () => {
    const found = chosen();
    open.disabled = found.length === 0;
    open.textContent = found.length > 1 ? `Compare ${found.length}` : "Open";
    command.textContent = found.length ? ["weir report", ...found.map((row) => row.dataset["word"])].join(" ") : atFirst;
  };
  for (const one of [search, since, ...selects]) one.addEventListener("input", filter);
  for (const row of rows) {
    row.querySelector("input")?.addEventListener("change", choose);
    row.querySelector("a")?.setAttribute("href", viewOf([placeOf(row)]));
  }
  open.addEventListener("click", () => location.assign(viewOf(chosen().map(placeOf))));
  filter();
  choose();
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
  const wrong = (text: unknown) => {
    error.hidden = text === undefined;
    error.textContent = text === undefined ? "" : String(text);
    start.disabled = text !== undefined;
  };
  let asked = 0;
  const check = async () => {
    const mine = ++asked;
    const answer = await send("check", content());
    if (mine !== asked) return;
    wrong(answer["error"]);
    byId("command").textContent = String(answer["command"] ?? "");
  };
  let timer = 0;
  place.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => void check(), 250);
  });
  place.addEventListener("submit", (event) => {
    event.preventDefault();
    start.disabled = true;
    void send("start", content()).then((answer) => {
      if (answer["error"] === undefined) location.assign(`${told.prefix}/runs/${String(answer["number"])}`);
      else wrong(answer["error"]);
    });
  });
  void check();
}

interface State {
  code: number | null;
  lines: string[];
  records: { place: string; complete: boolean }[];
}

function run(): void {
  const stop = byId<HTMLButtonElement>("stop");
  stop.addEventListener("click", () => void send(`runs/${told.number}/stop`, {}));
  const watch = async () => {
    const answer = await fetch(`${told.prefix}/runs/${told.number}/state`);
    const state = (await answer.json()) as State;
    byId("output").textContent = state.lines.join("\n");
    const complete = state.records.filter((one) => one.complete).length;
    byId<HTMLProgressElement>("progress").value = complete;
    byId("state").textContent =
      state.code === null ? `under way: ${complete} records are complete` : state.code === 0 ? "done" : `ended with exit code ${state.code}`;
    const places = state.records.map((one) => one.place).sort();
    if (places.length) {
      const text = state.code === null ? "Look at what there is so far" : "Open the records";
      byId("made").replaceChildren(el("a", { href: viewOf(places.slice(0, 24)) }, text));
    }
    if (state.code === null) setTimeout(() => void watch(), 700);
    else stop.disabled = true;
  };
  void watch();
}

const pages: Record<string, () => void> = { records, new: form, run };
pages[told.page]?.();
