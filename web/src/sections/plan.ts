// What a planned step puts on the wire, beside the textbook's formulas, and where its predicted time goes.
import { axis, figure, legend, tip } from "../charts/chart";
import type { Plan } from "../data";
import { h } from "../dom";
import * as format from "../format";
import { neutral } from "../palette";
import type { Section } from "./section";

/** A power of two that divides an axis of bytes into about five parts. */
function interval(plan: Plan): number {
  const most = Math.max(1, ...plan.totals.map((total) => Math.max(total.wire_bytes, total.textbook ?? 0)));
  return 2 ** Math.ceil(Math.log2(most / 5));
}

function volumes(plan: Plan): HTMLElement {
  return figure({
    label: () => `Bytes on the wire per step of ${plan.model} by group, planned and by the textbook`,
    height: 240,
    option: (colours) => ({
      legend: legend(colours),
      tooltip: {
        formatter: (p: { name: string; seriesName: string; value: number }) =>
          tip(`${p.name}, ${p.seriesName}`, [["on the wire", format.bytes(p.value)]]),
      },
      xAxis: axis(colours, "", {
        type: "category",
        data: plan.totals.map((total) => total.group),
        axisLabel: { color: colours.text },
      }),
      yAxis: axis(colours, "", {
        type: "value",
        interval: interval(plan),
        max: (extent: { max: number }) => Math.ceil(extent.max / interval(plan)) * interval(plan),
        axisLabel: { color: colours.muted, formatter: (v: number) => format.bytes(v) },
      }),
      series: [
        {
          type: "bar",
          name: "planned",
          color: neutral[0],
          barMaxWidth: 40,
          data: plan.totals.map((total) => total.wire_bytes),
        },
        {
          type: "bar",
          name: "textbook",
          color: neutral[6],
          barMaxWidth: 40,
          data: plan.totals.map((total) => total.textbook),
        },
      ],
    }),
    table: () => ({
      head: ["group", "operations", "bytes", "on the wire", "textbook"],
      rows: plan.totals.map((total) => [
        total.group,
        format.count(total.count),
        format.bytes(total.bytes),
        format.bytes(total.wire_bytes),
        total.textbook === null ? "–" : format.bytes(total.textbook),
      ]),
    }),
  }).element;
}

function breakdown(plan: Plan): HTMLElement | null {
  const parts = Object.entries(plan.breakdown)
    .filter(([, us]) => us > 0)
    .sort((a, b) => a[1] - b[1]);
  if (plan.step_us === null || parts.length === 0) return null;
  const step = plan.step_us;
  return figure({
    label: () => `Predicted exposed time of a step of ${plan.model} on ${plan.machine} by cause`,
    height: Math.max(120, 40 + 30 * parts.length),
    option: (colours) => ({
      grid: { left: 8, right: 110, top: 8, bottom: 8, containLabel: true },
      tooltip: {
        formatter: (p: { dataIndex: number }) =>
          tip(parts[p.dataIndex]![0], [
            ["exposed", format.time(parts[p.dataIndex]![1])],
            ["of the step", format.percent(parts[p.dataIndex]![1] / step)],
          ]),
      },
      xAxis: axis(colours, "", {
        type: "value",
        splitNumber: 3,
        axisLabel: { color: colours.muted, formatter: (v: number) => format.short(format.time(v)), hideOverlap: true },
      }),
      yAxis: axis(colours, "", {
        type: "category",
        data: parts.map(([name]) => name),
        axisLabel: { color: colours.text },
      }),
      series: [
        {
          type: "bar",
          color: neutral[0],
          barMaxWidth: 18,
          data: parts.map(([, us]) => us),
          label: {
            show: true,
            position: "right",
            color: colours.text,
            formatter: (p: { dataIndex: number }) =>
              `${format.time(parts[p.dataIndex]![1])}, ${format.percent(parts[p.dataIndex]![1] / step)}`,
          },
        },
      ],
    }),
    table: () => ({
      head: ["cause", "exposed", "of the step"],
      rows: [...parts].reverse().map(([name, us]) => [name, format.time(us), format.percent(us / step)]),
    }),
  }).element;
}

export const plans: Section = {
  id: "plan",
  title: "The planned step",
  lead: "What a training step of the model sends, as the framework issues it, and how long the cost model says it takes.",
  render(run) {
    if (run.plans.length === 0) return null;
    return run.plans.flatMap((plan) => [
      h("h3", {}, `${plan.model}, ${plan.layout}, ${plan.framework} (${plan.file})`),
      plan.step_us === null ? null : h("p", {}, `${format.time(plan.step_us)} per step on ${plan.machine}.`),
      h("div", { class: "two" }, volumes(plan), breakdown(plan)),
    ]);
  },
};
