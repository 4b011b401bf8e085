// Phases of a step and the layers in them, as lanes above the kernels of the timeline.
import { count, seconds, words } from '../format.js';
import { css, hue } from '../palette.js';

const kHues = { forward: 'blue', backward: 'green', optimizer: 'purple', clipping: 'orange' };
const kLetter = 7; // px
const kHeight = 0.62; // of a lane

/** Kernels of the first stream in a row that share a phase, or a phase and a layer: {from, to, phase, layer, kernels}. */
export function runsOf(spans, further, byLayer) {
  const stream = Math.min(...spans.stream);
  const all = [...spans.start_us.map((_, kernel) => ({ kernel, shift: 0 })), ...further].filter(({ kernel }) => spans.stream[kernel] === stream && (!byLayer || spans.layer[kernel] >= 0));
  const rows = all.map(({ kernel, shift }) => ({ from: spans.start_us[kernel] + shift, to: spans.start_us[kernel] + shift + spans.duration_us[kernel], phase: spans.phase_names[spans.phase[kernel]], layer: byLayer ? spans.layer[kernel] : -1, kernels: 1 })).sort((a, b) => a.from - b.from);
  const runs = [];
  for (const row of rows) {
    const last = runs.at(-1);
    if (last && last.phase === row.phase && last.layer === row.layer) {
      last.to = Math.max(last.to, row.to);
      last.kernels += 1;
    } else runs.push({ ...row });
  }
  return runs;
}

export const runSays = ({ phase, layer, from, to, kernels }) => `<b>${layer < 0 ? words(phase) : `layer ${layer}, ${words(phase)}`}</b><br>${seconds((to - from) * 1e-6)}, ${count(kernels)} kernels`;

/** A series that draws runs of {from, to, lane} with their names, where these have room. */
export const runSeries = (name, runs, end) => ({
  type: 'custom', name, encode: { x: [0, 1], y: 2 }, data: [[0, end, runs[0]?.lane ?? 0]],
  renderItem: (params, api) => {
    const { x: left, width } = params.coordSys;
    const zero = api.coord([0, 0])[0];
    const pixels = (api.coord([end, 0])[0] - zero) / end;
    const height = api.size([0, 1])[1] * kHeight;
    const children = [];
    for (const [i, { from, to, lane, phase, layer }] of runs.entries()) {
      const begin = Math.max(zero + from * pixels, left);
      const wide = Math.min(zero + to * pixels, left + width) - begin;
      if (wide <= 0.3) continue;
      const y = api.coord([0, lane])[1] - height / 2;
      const title = layer < 0 ? words(phase) : String(layer);
      children.push({ type: 'rect', shape: { x: begin, y, width: Math.max(0.3, wide - 0.5), height }, style: { fill: hue(kHues[phase] ?? 'grey'), opacity: layer >= 0 && i % 2 ? 0.22 : 0.4 } });
      if (wide > title.length * kLetter + 4) children.push({ type: 'text', silent: true, style: { text: title, x: begin + wide / 2, y: y + height / 2, align: 'center', verticalAlign: 'middle', fill: css('--ink'), fontSize: 12 } });
    }
    return { type: 'group', children, emphasisDisabled: true };
  },
});
