// What may be written next in a queue spec.

/** What may follow the name of a discipline: its parameters, and another discipline if it holds one. */
export interface QueueWords {
  words: string[];
  holds: boolean;
}

/** The texts that `text`, which is perhaps in the middle of a word, may be continued to by one word. */
export function completions(text: string, queues: Record<string, QueueWords>): string[] {
  const head = text.slice(0, text.search(/\S*$/));
  const begun = text.slice(head.length);
  const before = head.split(/\s+/).filter(Boolean);
  const last = before.filter((word) => Object.hasOwn(queues, word)).pop();
  const of = last === undefined ? undefined : queues[last];
  if (before.length > 0 && of === undefined) return [];
  const names = of === undefined ? ["default", ...Object.keys(queues)] : of.holds ? Object.keys(queues) : [];
  const words = (of?.words ?? []).filter((word) => !before.includes(word));
  return [...words, ...names].filter((word) => word.startsWith(begun)).map((word) => head + word);
}
