// Intervals as lines from low to high, for bars and points.
import type { Theme } from "../theme";

interface Api {
  value(dimension: number): number;
  coord(point: [number, number]): [number, number];
}

/** Data are [place, low, high]; `horizontal` intervals lie along x, with places on the y axis. */
export function whiskers(colours: Theme, data: [number, number, number][], horizontal: boolean): object {
  return {
    type: "custom",
    silent: true,
    z: 5,
    encode: horizontal ? { x: [1, 2], y: 0 } : { x: 0, y: [1, 2] },
    data,
    renderItem: (_: unknown, api: Api) => {
      const place = api.value(0);
      const at = (value: number) => api.coord(horizontal ? [value, place] : [place, value]);
      const [x1, y1] = at(api.value(1)),
        [x2, y2] = at(api.value(2));
      const cap = 4;
      const lines = horizontal
        ? [
            [x1, y1, x2, y2],
            [x1, y1 - cap, x1, y1 + cap],
            [x2, y2 - cap, x2, y2 + cap],
          ]
        : [
            [x1, y1, x2, y2],
            [x1 - cap, y1, x1 + cap, y1],
            [x2 - cap, y2, x2 + cap, y2],
          ];
      // A wider line of the page's colour below, for bars that are as dark as the line.
      const strokes = [
        { stroke: colours.surface, lineWidth: 3.2 },
        { stroke: colours.text, lineWidth: 1.2 },
      ];
      return {
        type: "group",
        children: strokes.flatMap((style) =>
          lines.map(([a, b, c, d]) => ({ type: "line", shape: { x1: a, y1: b, x2: c, y2: d }, style })),
        ),
      };
    },
  };
}
