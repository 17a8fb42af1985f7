// Sizes of messages: most of the messages are small, most of the bytes are in large ones.
import { axis, figure, legend, tip } from "../charts/chart";
import type { Sizes } from "../data";
import { choice, h } from "../dom";
import * as format from "../format";
import { neutral } from "../palette";
import type { Section } from "./section";

export const sizes: Section = {
  id: "sizes",
  title: "Message sizes",
  lead: "Share of the operations and share of the bytes of one step, by size in powers of two.",
  render(run) {
    const sources: { label: string; sizes: Sizes }[] = [
      ...run.traces.map((trace) => ({ label: `recorded: ${trace.file}`, sizes: trace })),
      ...run.plans.map((plan) => ({ label: `planned: ${plan.model}, ${plan.layout} (${plan.file})`, sizes: plan })),
    ].filter((source) => source.sizes.histogram.length > 0);
    if (sources.length === 0) return null;
    let shown = sources[0]!;
    const bins = () => {
      const known = new Map(shown.sizes.histogram.map((bin) => [bin.low, bin]));
      const lows = [...known.keys()];
      const all = [];
      for (let low = Math.min(...lows); low <= Math.max(...lows); low *= 2)
        all.push(known.get(low) ?? { low, count: 0, bytes: 0 });
      const messages = all.reduce((sum, bin) => sum + bin.count, 0),
        volume = all.reduce((sum, bin) => sum + bin.bytes, 0);
      return all.map((bin) => ({
        ...bin,
        ofCount: bin.count / Math.max(1, messages),
        ofBytes: bin.bytes / Math.max(1, volume),
      }));
    };
    const sentence = h("p");
    const say = () => {
      const { limit, share_of_count, share_of_bytes } = shown.sizes.small;
      sentence.textContent = `${format.percent(share_of_count)} of the operations are small (up to ${format.bytes(limit)}); they carry ${format.percent(share_of_bytes)} of the bytes.`;
    };
    const plot = figure({
      label: () => `Message sizes, ${shown.label}`,
      height: 300,
      option: (colours) => {
        const data = bins();
        return {
          legend: legend(colours),
          tooltip: {
            formatter: (p: { dataIndex: number }) => {
              const bin = data[p.dataIndex]!;
              return tip(`${format.bytes(bin.low)} to ${format.bytes(2 * bin.low)}`, [
                ["operations", `${format.count(bin.count)} (${format.percent(bin.ofCount)})`],
                ["bytes", `${format.bytes(bin.bytes)} (${format.percent(bin.ofBytes)})`],
              ]);
            },
          },
          xAxis: axis(colours, "", {
            type: "category",
            data: data.map((bin) => format.bytes(bin.low)),
            axisLabel: { color: colours.muted, hideOverlap: true },
          }),
          yAxis: axis(colours, "", {
            type: "value",
            axisLabel: { color: colours.muted, formatter: (v: number) => `${v} %` },
          }),
          series: [
            {
              type: "bar",
              name: "of the operations",
              color: neutral[0],
              barMaxWidth: 40,
              data: data.map((bin) => 100 * bin.ofCount),
            },
            {
              type: "bar",
              name: "of the bytes",
              color: neutral[1],
              barMaxWidth: 40,
              data: data.map((bin) => 100 * bin.ofBytes),
            },
          ],
        };
      },
      table: () => ({
        head: ["size from", "operations", "share", "bytes", "share of bytes"],
        rows: bins()
          .filter((bin) => bin.count > 0)
          .map((bin) => [
            format.bytes(bin.low),
            format.count(bin.count),
            format.percent(bin.ofCount),
            format.bytes(bin.bytes),
            format.percent(bin.ofBytes),
          ]),
      }),
    });
    say();
    const pick = choice(
      "Step",
      sources.map((s) => s.label),
      (index) => {
        shown = sources[index]!;
        plot.update();
        say();
      },
    );
    return [h("div", { class: "controls" }, pick), sentence, plot.element];
  },
};
