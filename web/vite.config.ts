// One HTML file with everything inlined; ECharts is tree-shaken to the parts that src/charts/echarts.ts registers.
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

export default defineConfig({
  base: "./",
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: "es2021", modulePreload: false, reportCompressedSize: false },
});
