// When it pays to send many small tensors as one: their time one by one and fused, by the size of one.
import { axis, figure, legend, tip } from "../charts/chart";
import type { Fusion, Run } from "../data";
import { h } from "../dom";
import * as format from "../format";
import { neutral } from "../palette";

function chartOf(fusion: Fusion): HTMLElement {
  const where = format.shape(fusion.hosts, fusion.ranks_per_host);
  const kinds = [
    { name: "one by one", colour: neutral[6]!, us: fusion.sizes.map((size) => size.separate_us) },
    { name: "fused", colour: neutral[0]!, us: fusion.sizes.map((size) => size.fused_us) },
  ];
  return figure({
    label: () => `Time of many all_reduces of one size, one by one and fused: ${where}`,
    height: 240,
    option: (colours) => ({
      legend: legend(colours),
      tooltip: {
        formatter: (p: { dataIndex: number; seriesName: string; value: number }) =>
          tip(`${format.bytes(fusion.sizes[p.dataIndex]!.bytes)}, ${p.seriesName}`, [
            ["all tensors together", format.time(p.value)],
          ]),
      },
      xAxis: axis(colours, "", {
        type: "category",
        data: fusion.sizes.map((size) => format.bytes(size.bytes)),
        axisLabel: { color: colours.text },
      }),
      yAxis: axis(colours, "", {
        type: "value",
        axisLabel: { color: colours.muted, formatter: (v: number) => format.short(format.time(v)) },
      }),
      series: kinds.map(({ name, colour, us }) => ({ type: "bar", name, color: colour, barMaxWidth: 40, data: us })),
    }),
    table: () => ({
      head: ["size of a tensor", "one by one", "fused", "fused is"],
      rows: fusion.sizes.map((size) => [
        format.bytes(size.bytes),
        format.time(size.separate_us),
        format.time(size.fused_us),
        `${format.times(size.separate_us / size.fused_us)} as fast`,
      ]),
    }),
  }).element;
}

export function fusions(run: Run): Node[] {
  const all = run.routes.flatMap((table) => table.fusion.map((fusion) => ({ fusion, file: table.file })));
  return all.flatMap(({ fusion, file }) => [
    h("h3", {}, `Small tensors sent together: ${format.shape(fusion.hosts, fusion.ranks_per_host)} (${file})`),
    h(
      "p",
      {},
      fusion.limit > 0
        ? `Tensors of up to ${format.bytes(fusion.limit)} are faster fused; lists, fuse scopes and PyTorch's coalesced calls use that limit.`
        : "Fusing was faster at no size, so tensors are sent one by one.",
    ),
    chartOf(fusion),
  ]);
}
