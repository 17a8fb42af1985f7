// Puts the built page where CMake embeds it: src/report/page.html, the one generated file of the repository.
import { readFileSync, writeFileSync } from "node:fs";

const target = process.argv[2] ?? new URL("../src/report/page.html", import.meta.url);
const page = readFileSync(new URL("dist/index.html", import.meta.url), "utf8");
const marks = page.split("MEDLEY_REPORT_DATA").length - 1;
if (marks !== 1) throw new Error(`dist/index.html has ${marks} places for the data, not one`);
writeFileSync(target, page.trimEnd() + "\n");
