// Whole training steps over each library and over auto: one small chart for each kind of step.
import { axis, figure, tip } from "../charts/chart";
import { whiskers } from "../charts/whiskers";
import type { StepRow, Steps } from "../data";
import { h } from "../dom";
import * as format from "../format";
import { backendColour } from "../palette";
import type { Section } from "./section";

const names: Record<string, string> = { moe: "Mixture of experts", dlrm: "DLRM", dense: "Dense model" };

function bestLibrary(rows: StepRow[]): StepRow | undefined {
  return rows
    .filter((row) => row.backend !== "auto" && !row.backend.includes("+"))
    .sort((a, b) => a.median_us - b.median_us)[0];
}

function chartOf(steps: Steps, mix: string): HTMLElement {
  const rows = steps.rows.filter((row) => row.mix === mix).sort((a, b) => b.median_us - a.median_us);
  const auto = rows.find((row) => row.backend === "auto"),
    best = bestLibrary(rows);
  // A library that is many times slower would leave the others a few pixels: its bar ends at the edge, marked with ▸.
  const edge = Math.min(4 * rows.at(-1)!.median_us, 1.15 * rows[0]!.median_us);
  const title = names[mix] ?? mix;
  const words =
    auto && best
      ? `auto is ${format.times(best.median_us / auto.median_us)} as fast as ${best.backend}, the best single library.`
      : "";
  const plot = figure({
    label: () => `${title} step on ${steps.ranks} ranks: median time over each backend. ${words}`,
    height: 40 + 30 * rows.length,
    option: (colours) => ({
      grid: { left: 8, right: 16, top: 6, bottom: 8, containLabel: true },
      tooltip: {
        formatter: (p: { dataIndex: number }) => {
          const row = rows[p.dataIndex]!;
          return tip(`${row.backend}, ${title}`, [
            ["median", format.time(row.median_us)],
            ["deviation (MAD)", format.time(row.mad_us)],
            ["99th percentile", format.time(row.p99_us)],
            ["steps", format.count(row.iterations)],
          ]);
        },
      },
      xAxis: axis(colours, "", {
        type: "value",
        min: 0,
        max: edge,
        splitNumber: 3,
        axisLabel: {
          color: colours.muted,
          formatter: (v: number) => format.short(format.time(v)),
          hideOverlap: true,
          showMaxLabel: false,
        },
      }),
      yAxis: axis(colours, "", {
        type: "category",
        data: rows.map((row) => row.backend),
        axisLabel: {
          color: colours.text,
          formatter: (name: string, i: number) =>
            `${name}  {time|${format.time(rows[i]!.median_us)}${rows[i]!.median_us > edge ? " ▸" : ""}}`,
          rich: { time: { color: colours.muted, width: 62, align: "right" } },
        },
      }),
      series: [
        {
          type: "bar",
          barMaxWidth: 18,
          data: rows.map((row) => ({
            value: Math.min(row.median_us, edge),
            itemStyle: { color: backendColour(row.backend) },
          })),
        },
        whiskers(
          colours,
          rows.flatMap((row, i) =>
            row.median_us > edge
              ? []
              : [
                  [i, Math.max(0, row.median_us - row.mad_us), Math.min(edge, row.median_us + row.mad_us)] as [
                    number,
                    number,
                    number,
                  ],
                ],
          ),
          true,
        ),
      ],
    }),
    table: () => ({
      head: ["backend", "median", "MAD", "99th percentile", "steps", "against the best library"],
      rows: [...rows]
        .reverse()
        .map((row) => [
          row.backend,
          format.time(row.median_us),
          format.time(row.mad_us),
          format.time(row.p99_us),
          format.count(row.iterations),
          best ? format.times(best.median_us / row.median_us) : "–",
        ]),
    }),
  });
  return h("div", { class: "card" }, h("h4", {}, title), h("p", {}, words), plot.element);
}

export const steps: Section = {
  id: "steps",
  title: "Whole steps",
  lead: "The communication of a training step over each library alone and over auto, which takes the measured route of each operation. Shorter is faster; lines show the deviation, ▸ marks a bar that is cut off.",
  render(run) {
    if (run.steps.length === 0) return null;
    return run.steps.flatMap((measured) => {
      const mixes = [...new Set(measured.rows.map((row) => row.mix))];
      const where = measured.hosts ? ` on ${measured.hosts} host${measured.hosts > 1 ? "s" : ""}` : "";
      return [
        h("h3", {}, `${measured.ranks} ranks${where} (${measured.file})`),
        h("div", { class: "three" }, ...mixes.map((mix) => chartOf(measured, mix))),
      ];
    });
  },
};
