// One bar for each backend, the fastest on top, with its interval: the times of a whole step.
import type { TableData } from "../dom";
import * as format from "../format";
import { backendColour } from "../palette";
import { axis, figure, tip } from "./chart";
import { whiskers } from "./whiskers";

export interface Bar {
  backend: string;
  median_us: number;
  low_us: number;
  high_us: number;
  /** What its tooltip adds. */
  more: [string, string][];
}

export function backendBars(label: string, bars: Bar[], table: () => TableData): HTMLElement {
  const rows = [...bars].sort((a, b) => b.median_us - a.median_us);
  // A library that is many times slower would leave the others a few pixels: its bar ends at the edge, marked with ▸.
  const edge = Math.min(4 * rows.at(-1)!.median_us, 1.15 * rows[0]!.median_us);
  const within = rows.flatMap((row, i): [number, number, number][] =>
    row.median_us > edge ? [] : [[i, Math.max(0, row.low_us), Math.min(edge, row.high_us)]],
  );
  return figure({
    label: () => label,
    height: 40 + 30 * rows.length,
    option: (colours) => ({
      grid: { left: 8, right: 16, top: 6, bottom: 8, containLabel: true },
      tooltip: {
        formatter: (p: { dataIndex: number }) => {
          const row = rows[p.dataIndex]!;
          return tip(row.backend, [["median", format.time(row.median_us)], ...row.more]);
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
        whiskers(colours, within, true),
      ],
    }),
    table,
  }).element;
}
