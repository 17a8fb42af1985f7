// Predicted against measured: planned steps that were run for real, beside what their parts and the route table predict.
import { axis, figure, legend, tip } from "../charts/chart";
import type { Run } from "../data";
import { h } from "../dom";
import * as format from "../format";
import { backendColour } from "../palette";
import { swatch } from "./backends";
import type { Section } from "./section";

interface Point {
  schedule: string;
  ranks: number;
  backend: string;
  kind: string;
  measured: number;
  predicted: number;
}
const kinds = [
  { name: "from its operations timed alone", symbol: "circle", of: "calibrated_us" },
  { name: "by the route table", symbol: "triangle", of: "predicted_us" },
] as const;

function pointsOf(run: Run): Point[] {
  return run.replays.flatMap((replay) =>
    kinds.flatMap((kind) =>
      Object.entries(replay[kind.of]).map(([backend, predicted]) => ({
        schedule: replay.schedule,
        ranks: replay.ranks,
        backend,
        kind: kind.name,
        measured: replay.step_us[backend]!,
        predicted,
      })),
    ),
  );
}

const off = (point: Point) => format.signedPercent(point.predicted / point.measured - 1);

function scatter(points: Point[]): HTMLElement {
  const all = points.flatMap((point) => [point.measured, point.predicted]).filter((us) => us > 0);
  // In ms the marks of an axis of base 2 are round numbers.
  const low = 2 ** Math.floor(Math.log2(Math.min(...all) / 1e3)),
    high = 2 ** Math.ceil(Math.log2(Math.max(...all) / 1e3));
  const used = kinds.filter((kind) => points.some((point) => point.kind === kind.name));
  return figure({
    label: () => "Predicted against measured step times; on the line they are equal",
    height: 420,
    option: (colours) => {
      const time = (name: string) =>
        axis(colours, name, {
          type: "log",
          logBase: 2,
          min: low,
          max: high,
          nameLocation: "middle",
          nameGap: name === "measured" ? 28 : 56,
          axisLabel: {
            color: colours.muted,
            formatter: (v: number) => format.short(format.time(1e3 * v)),
            hideOverlap: true,
            showMinLabel: name === "measured",
          },
        });
      return {
        legend: legend(colours, {
          data: used.map((kind) => ({ name: kind.name, itemStyle: { color: colours.muted } })),
        }),
        grid: { left: 28, right: 28, top: 34, bottom: 28, containLabel: true },
        tooltip: {
          formatter: (p: { value: [number, number, number] }) => {
            const point = points[p.value[2]]!;
            return tip(`${point.schedule} over ${point.backend}`, [
              ["measured", format.time(point.measured)],
              ["predicted", format.time(point.predicted)],
              ["off by", off(point)],
              ["predicted", point.kind],
              ["ranks", String(point.ranks)],
            ]);
          },
        },
        xAxis: time("measured"),
        yAxis: time("predicted"),
        series: used.map((kind, i) => ({
          type: "scatter",
          name: kind.name,
          symbol: kind.symbol,
          symbolSize: 13,
          data: points.flatMap((point, at) =>
            point.kind === kind.name
              ? [
                  {
                    value: [point.measured / 1e3, point.predicted / 1e3, at],
                    itemStyle: { color: backendColour(point.backend) },
                  },
                ]
              : [],
          ),
          markLine:
            i > 0
              ? undefined
              : {
                  silent: true,
                  symbol: "none",
                  label: { show: false },
                  lineStyle: { color: colours.muted, type: "dashed" },
                  data: [[{ coord: [low, low] }, { coord: [high, high] }]],
                },
        })),
      };
    },
    table: () => ({
      head: ["schedule", "ranks", "backend", "measured", "predicted", "off by", "predicted how"],
      rows: points.map((point) => [
        point.schedule,
        point.ranks,
        point.backend,
        format.time(point.measured),
        format.time(point.predicted),
        off(point),
        point.kind,
      ]),
    }),
  }).element;
}

export const replays: Section = {
  id: "replay",
  title: "Predicted against measured",
  lead: "Planned steps, run for real over each backend with their computation as time that passes. Points on the dashed line were predicted exactly.",
  render(run) {
    if (run.replays.length === 0) return null;
    const points = pointsOf(run).filter((point) => point.measured > 0 && point.predicted > 0);
    if (points.length === 0)
      return [
        h(
          "p",
          {},
          "Steps were replayed without a prediction: medley replay --calibrate, or --table with a route table, adds one.",
        ),
      ];
    const backends = [...new Set(points.map((point) => point.backend))].sort();
    return [h("div", { class: "square" }, h("div", { class: "key" }, ...backends.map(swatch)), scatter(points))];
  },
};
