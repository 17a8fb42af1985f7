// Whole training steps over each library and over auto: one small chart for each kind of step, and one for each step that a table was tuned for.
import { backendBars } from "../charts/backend_bars";
import type { StepRow, Steps, TunedStep } from "../data";
import { foldedTable, h } from "../dom";
import * as format from "../format";
import type { Section } from "./section";

const names: Record<string, string> = { moe: "Mixture of experts", dlrm: "DLRM", dense: "Dense model" };

function bestLibrary(rows: StepRow[]): StepRow | undefined {
  return rows
    .filter((row) => row.backend !== "auto" && !row.backend.includes("+"))
    .sort((a, b) => a.median_us - b.median_us)[0];
}

function chartOf(steps: Steps, mix: string): HTMLElement {
  const rows = steps.rows.filter((row) => row.mix === mix).sort((a, b) => a.median_us - b.median_us);
  const auto = rows.find((row) => row.backend === "auto"),
    best = bestLibrary(rows);
  const title = names[mix] ?? mix;
  const words =
    auto && best
      ? `auto is ${format.times(best.median_us / auto.median_us)} as fast as ${best.backend}, the best single library.`
      : "";
  const bars = rows.map((row) => ({
    backend: row.backend,
    median_us: row.median_us,
    low_us: row.median_us - row.mad_us,
    high_us: row.median_us + row.mad_us,
    more: [
      ["deviation (MAD)", format.time(row.mad_us)],
      ["99th percentile", format.time(row.p99_us)],
      ["steps", format.count(row.iterations)],
    ] as [string, string][],
  }));
  const plot = backendBars(
    `${title} step on ${steps.ranks} ranks: median time over each backend. ${words}`,
    bars,
    () => ({
      head: ["backend", "median", "MAD", "99th percentile", "steps", "against the best library"],
      rows: rows.map((row) => [
        row.backend,
        format.time(row.median_us),
        format.time(row.mad_us),
        format.time(row.p99_us),
        format.count(row.iterations),
        best ? format.times(best.median_us / row.median_us) : "–",
      ]),
    }),
  );
  return h("div", { class: "card" }, h("h4", {}, title), h("p", {}, words), plot);
}

function sizes(from: number, to: number | null): string {
  if (to === null) return from === 0 ? "all" : `from ${format.bytes(from)}`;
  return from === 0 ? `up to ${format.bytes(to)}` : `${format.bytes(from)} to ${format.bytes(to)}`;
}

function tuned(step: TunedStep, file: string): HTMLElement {
  const title = names[step.step] ?? step.step;
  const words = step.library
    ? `No mix was surely faster than ${step.library} alone, so the table uses it for every operation.`
    : `The chosen routes are ${format.times(step.gain)} as fast as the best single library (95 % interval ${format.times(step.gain_low)} to ${format.times(step.gain_high)}).`;
  const plot = backendBars(
    `${title} step, tuned for: median time over each backend and over the chosen routes. ${words}`,
    step.times.map((time) => ({
      ...time,
      more: [
        ["95 % interval", `${format.time(time.low_us)} to ${format.time(time.high_us)}`],
        ["steps", format.count(time.samples)],
      ],
    })),
    () => ({
      head: ["backend", "median", "95 % interval", "steps"],
      rows: step.times.map((time) => [
        time.backend,
        format.time(time.median_us),
        `${format.time(time.low_us)} to ${format.time(time.high_us)}`,
        format.count(time.samples),
      ]),
    }),
  );
  return h(
    "div",
    { class: "card" },
    h("h4", {}, `${title}, ${format.shape(step.hosts, step.ranks_per_host)} (${file})`),
    h("p", {}, words, step.settled ? "" : " The time ran out before this was settled."),
    plot,
    foldedTable("Chosen routes", `Routes chosen for the step ${title}`, () => ({
      head: ["operation", "sizes", "backend", "algorithm"],
      rows: step.routes.map((route) => [route.op, sizes(route.from, route.to), route.backend, route.algorithm]),
    })),
  );
}

export const steps: Section = {
  id: "steps",
  title: "Whole steps",
  lead: "The communication of a training step over each library alone and over auto, which takes the measured route of each operation. Shorter is faster; lines show the deviation, ▸ marks a bar that is cut off.",
  render(run) {
    const tables = run.routes.filter((table) => table.tuned);
    if (run.steps.length === 0 && tables.length === 0) return null;
    const measured = run.steps.flatMap((file) => {
      const mixes = [...new Set(file.rows.map((row) => row.mix))];
      const where = file.hosts ? ` on ${file.hosts} host${file.hosts > 1 ? "s" : ""}` : "";
      return [
        h("h3", {}, `${file.ranks} ranks${where} (${file.file})`),
        h("div", { class: "three" }, ...mixes.map((mix) => chartOf(file, mix))),
      ];
    });
    if (tables.length > 0)
      measured.push(
        h("h3", {}, "Tuned under the load of the whole step"),
        h("div", { class: "two" }, ...tables.map((table) => tuned(table.tuned!, table.file))),
      );
    return measured;
  },
};
