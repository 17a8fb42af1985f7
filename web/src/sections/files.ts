// Which files the report is made of, and why others are not in it.
import { h, table } from "../dom";
import type { Section } from "./section";

export const files: Section = {
  id: "files",
  title: "Files",
  lead: "What this report was made of.",
  render(run) {
    const refused = run.files.filter((file) => file.status === "refused");
    return [
      run.skipped.length > 0 ? h("h3", {}, "Skipped by the run") : null,
      run.skipped.length > 0 ? h("ul", {}, ...run.skipped.map((line) => h("li", {}, line))) : null,
      ...refused.map((file) => h("p", { class: "alert" }, `${file.file} was refused: ${file.why}`)),
      table(
        {
          head: ["file", "holds", "status", "why"],
          rows: run.files.map((f) => [f.file, f.kind || "–", f.status, f.why || "–"]),
        },
        `Files of ${run.name}`,
      ),
    ];
  },
};
