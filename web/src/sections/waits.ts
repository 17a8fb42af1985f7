// Why programs waited for communication: the exposed time of a step by cause, and the longest waits in words.
import { axis, figure, tip } from "../charts/chart";
import type { Waits } from "../data";
import { h } from "../dom";
import * as format from "../format";
import { neutral } from "../palette";

/** As medley reconcile explains them (docs/trace.md). */
const words: Record<string, string> = {
  late_rank: "a rank is late",
  queue: "queued behind another operation",
  order: "ordered after others",
  slow: "slower than predicted",
  overlap: "waited for too early",
  blocking: "blocking by design",
  unknown: "unknown",
};

export function waits(time: Waits, source: string): Node[] {
  const causes = Object.entries(time.causes ?? {})
    .filter(([, us]) => us > 0)
    .sort((a, b) => a[1] - b[1]);
  const total = time.exposed_us ?? 0;
  const lines = time.waits.map((wait) => h("li", {}, wait.sentence));
  const said: Node[] = time.remarks.map((remark) => h("p", { class: "muted" }, remark));
  if (lines.length > 0) said.unshift(h("ul", {}, ...lines));
  if (causes.length === 0) return [h("p", {}, `${source}: nobody waited for communication.`), ...said];
  const plot = figure({
    label: () => `Exposed communication of a step of ${source} by cause`,
    height: 40 + 30 * causes.length,
    option: (colours) => ({
      grid: { left: 8, right: 110, top: 8, bottom: 8, containLabel: true },
      tooltip: {
        formatter: (p: { dataIndex: number }) =>
          tip(words[causes[p.dataIndex]![0]] ?? causes[p.dataIndex]![0], [
            ["exposed a step", format.time(causes[p.dataIndex]![1])],
          ]),
      },
      xAxis: axis(colours, "", {
        type: "value",
        splitNumber: 3,
        axisLabel: { color: colours.muted, formatter: (v: number) => format.short(format.time(v)), hideOverlap: true },
      }),
      yAxis: axis(colours, "", {
        type: "category",
        data: causes.map(([cause]) => words[cause] ?? cause),
        axisLabel: { color: colours.text },
      }),
      series: [
        {
          type: "bar",
          color: neutral[5],
          barMaxWidth: 18,
          data: causes.map(([, us]) => us),
          label: {
            show: true,
            position: "right",
            color: colours.text,
            formatter: (p: { dataIndex: number }) =>
              `${format.time(causes[p.dataIndex]![1])}, ${format.percent(causes[p.dataIndex]![1] / total)}`,
          },
        },
      ],
    }),
    table: () => ({
      head: ["cause", "exposed a step", "share"],
      rows: [...causes]
        .reverse()
        .map(([cause, us]) => [words[cause] ?? cause, format.time(us), format.percent(us / total)]),
    }),
  });
  const step = time.step_us === null ? "" : ` of ${format.time(time.step_us)}`;
  return [
    h("h3", {}, `Why ${source} waits`),
    h("p", {}, `${format.time(total)}${step} a step is exposed communication; times expected by ${time.expected_by}.`),
    plot.element,
    ...said,
  ];
}
