// The worker as the page sees it: what is asked last is what is run. A run that is done is worth showing while the next one is
// at work, as while a slider moves; of anything else only what it says of the last one counts.
import type { Done, Said } from "./messages";

/** What the page wants to hear. */
export interface Heard {
  /** The simulator is there, with these congestion controls. */
  ready(congestion_controls: string[]): void;
  /** The run that was asked for last has come this far: 0 to 1. */
  progress(share: number): void;
  done(done: Done): void;
  /** What is wrong with the scenario, in a sentence. */
  wrong(sentence: string): void;
}

export class Simulator {
  private readonly worker = new Worker("worker.js", { type: "module" });
  private id = 0;

  constructor(private readonly heard: Heard) {
    this.worker.addEventListener("message", ({ data }: MessageEvent<Said>) => this.on(data));
    this.worker.addEventListener("error", (event) => this.broken(event.message));
  }

  /** Asks for a run, in place of any other: its number. */
  run(text: string): number {
    this.id += 1;
    this.worker.postMessage({ id: this.id, text });
    return this.id;
  }

  /** Whether a run is the one that was asked for last. */
  isLast(id: number): boolean {
    return id === this.id;
  }

  /** Ends the run where it is; what was measured is shown. */
  stop(): void {
    this.worker.postMessage({ stop: this.id });
  }

  private broken(why: string | undefined): void {
    this.heard.wrong(`The simulator cannot be loaded${why ? `: ${why}` : ""}. Does this browser run WebAssembly?`);
  }

  private on(said: Said): void {
    if ("ready" in said) this.heard.ready(said.ready);
    else if ("broken" in said) this.broken(said.broken);
    else if ("done" in said) this.heard.done(said.done);
    else if (said.id !== this.id) return;
    else if ("share" in said) this.heard.progress(said.share);
    else this.heard.wrong(said.wrong);
  }
}
