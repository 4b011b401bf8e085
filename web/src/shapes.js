// Thousands of boxes, or an area in steps, as one shape of a chart: drawn in one go, and asked what the pointer is over.
import { graphic } from 'echarts/core';

graphic.registerShape('boxes', graphic.extendShape({
  shape: { boxes: [] },
  buildPath(context, { boxes }) {
    for (let i = 0; i < boxes.length; i += 4) context.rect(boxes[i], boxes[i + 1], boxes[i + 2], boxes[i + 3]);
  },
}));

graphic.registerShape('area', graphic.extendShape({
  shape: { points: [] },
  buildPath(context, { points }) {
    for (let i = 0; i < points.length; i += 2) {
      if (i) context.lineTo(points[i], points[i + 1]);
      else context.moveTo(points[i], points[i + 1]);
    }
    context.closePath();
  },
}));

const kSeen = 0.05; // px between two heights that are told apart
const kColumn = 0.5; // px
const kLeast = 0.5; // px that a box is wide at least
const kShare = 0.62; // of the height of a lane

/**
 * What a custom series with one datum draws: `rows` of {from, to, lane} in the order of their begins, along a value axis and
 * lanes, `gap` pixels apart. Boxes that touch become one: at this size nobody sees where one ends.
 */
export const drawnBoxes = (rows, end, gap = 0) => (params, api) => {
  const { x: left, width } = params.coordSys;
  const right = left + width;
  const zero = api.coord([0, 0])[0];
  const pixels = (api.coord([end, 0])[0] - zero) / end;
  const height = api.size([0, 1])[1] * kShare;
  const last = new Map(); // of a lane: where its last box begins in `boxes`
  const boxes = [];
  for (const { from, to, lane } of rows) {
    const begin = Math.max(zero + from * pixels, left);
    const ends = Math.min(Math.max(zero + to * pixels - gap, zero + from * pixels + kLeast), right);
    if (ends <= begin) continue;
    const before = last.get(lane);
    if (before !== undefined && begin <= boxes[before] + boxes[before + 2] + 0.05) {
      boxes[before + 2] = Math.max(boxes[before + 2], ends - boxes[before]);
      continue;
    }
    last.set(lane, boxes.length);
    boxes.push(begin, api.coord([0, lane])[1] - height / 2, ends - begin, height);
  }
  return { type: 'boxes', shape: { boxes }, style: { fill: api.visual('color') }, emphasisDisabled: true };
};

/** [{kernel, shift}]: what a step runs beyond the spans that it has, by `copies` of ranges of them. */
export const copiesOf = ({ copies }) => (copies?.begin ?? []).flatMap((begin, c) => Array.from({ length: copies.end[c] - begin }, (_, i) => ({ kernel: begin + i, shift: copies.shift_us[c] })));

const kHatch = 6; // px from line to line

/** A fill of this colour with light lines across. */
export function hatched(fill) {
  const canvas = document.createElement('canvas');
  const pen = canvas.getContext?.('2d');
  if (!pen) return fill;
  canvas.width = canvas.height = kHatch;
  pen.fillStyle = fill;
  pen.fillRect(0, 0, kHatch, kHatch);
  pen.strokeStyle = 'rgba(255, 255, 255, 0.55)';
  for (const at of [-kHatch, 0, kHatch]) {
    pen.moveTo(at, kHatch);
    pen.lineTo(at + kHatch, 0);
  }
  pen.stroke();
  return { image: canvas, repeat: 'repeat' };
}

/**
 * Adds a line in steps to `points`: `values[i]` from `place(i)` on, up to the next. Of the changes within one pixel the least,
 * the most and the last are drawn, which look like all of them.
 */
function addSteps(points, count, place, height) {
  let [column, low, high, last] = [NaN, NaN, NaN, NaN];
  const leave = () => { if (low < high) points.push(column, low, column, high, column, last); };
  for (let i = 0; i < count; i += 1) {
    const y = height(i);
    if (Math.abs(y - last) < kSeen) continue;
    const x = place(i);
    if (!(x - column < kColumn)) {
      leave();
      column = x;
      if (last === last) points.push(x, last);
      points.push(x, y);
      [low, high] = [y, y];
    }
    [low, high, last] = [Math.min(low, y), Math.max(high, y), y];
  }
  leave();
  points.push(place(count), last);
}

/** What a custom series with one datum draws: from `low` up to `high`, each moment's value kept up to the next. `style` beside the fill. */
export const drawnArea = (at, low, high, style) => (params, api) => {
  const { x: left, width } = params.coordSys;
  const [x0, y0] = api.coord([0, 0]);
  const end = at.at(-1);
  const across = (api.coord([end, 0])[0] - x0) / end;
  const up = (api.coord([0, 1e9])[1] - y0) / 1e9;
  const place = (i) => Math.min(Math.max(x0 + at[Math.min(i, at.length - 1)] * across, left), left + width);
  const upper = [];
  const lower = [];
  addSteps(upper, at.length, place, (i) => y0 + high[i] * up);
  addSteps(lower, at.length, place, (i) => y0 + low[i] * up);
  for (let i = lower.length - 2; i >= 0; i -= 2) upper.push(lower[i], lower[i + 1]);
  return { type: 'area', shape: { points: upper }, style: { fill: api.visual('color'), ...style }, emphasisDisabled: true };
};

const looks = new WeakMap(); // chart → {at: [x, y], find}

/** From now on underPointer() of this chart asks `find(value along x, lane, width of a pixel)`. */
export function follow(chart, find) {
  const known = looks.get(chart);
  if (known) {
    known.find = find;
    return;
  }
  const look = { at: [0, 0], find };
  looks.set(chart, look);
  for (const event of ['mousemove', 'mousedown']) chart.getZr().on(event, ({ offsetX, offsetY }) => { look.at = [offsetX, offsetY]; });
}

/** What `find` makes of the place of the pointer. */
export function underPointer(chart) {
  const look = looks.get(chart);
  if (!look) return null;
  const [x, lane] = chart.convertFromPixel({ gridIndex: 0 }, look.at);
  const [next] = chart.convertFromPixel({ gridIndex: 0 }, [look.at[0] + 1, look.at[1]]);
  return look.find(x, lane, next - x);
}
