// Ranks of a pipeline, a lane each: which pass they work on when, and the bubbles between.
import { axis, chart } from '../chart.js';
import { behind } from '../behind.js';
import { card, escape } from '../dom.js';
import { percent, seconds } from '../format.js';
import { hue } from '../palette.js';
import { drawnBoxes, follow, underPointer } from '../shapes.js';

const kWays = [['forward', true, 'blue'], ['backward', false, 'green']];

/** `lanes`: of a page of a pipeline, an entry a rank. */
export function lanes({ lanes: all, prediction }) {
  if (!all?.length) return [];
  const passes = all.flatMap((lane, i) => lane.pass.map((name, p) => ({ name, rank: lane.rank, lane: i, from: lane.start_us[p], to: lane.end_us[p], forward: lane.forward[p] })));
  const begin = Math.min(0, ...passes.map((p) => p.from));
  const end = Math.max(prediction.step.time_s * 1e6, ...passes.map((p) => p.to));
  const of = (forward) => passes.filter((p) => p.forward === forward).sort((a, b) => a.from - b.from);
  let drawn;
  const begun = (chart) => {
    drawn = chart;
    follow(chart, (at, lane) => passes.find((p) => p.lane === lane && p.from <= at && at <= p.to) ?? null);
  };
  const make = () => ({
    grid: { left: 12, right: 24, top: 40, bottom: 64, containLabel: true },
    legend: { top: 0, data: kWays.map(([name]) => name) },
    tooltip: { trigger: 'item', formatter: () => { const p = underPointer(drawn); return p ? `<b>${escape(p.name)}</b>, rank ${p.rank}<br>${p.forward ? 'forward' : 'backward'}, from ${seconds(p.from * 1e-6)} for ${seconds((p.to - p.from) * 1e-6)}` : ''; } },
    xAxis: axis({ type: 'value', min: begin, max: end, axisLabel: { formatter: (v) => seconds(v * 1e-6) } }),
    yAxis: axis({ type: 'category', inverse: true, data: all.map(({ rank }) => `rank ${rank}`), splitLine: { show: false }, axisLabel: { fontSize: 13 } }),
    dataZoom: [{ type: 'inside', filterMode: 'none' }, { type: 'slider', height: 20, bottom: 8, filterMode: 'none', labelFormatter: (v) => seconds(v * 1e-6) }],
    series: kWays.map(([name, forward, shade]) => ({ type: 'custom', name, renderItem: drawnBoxes(of(forward), end, 1), encode: { x: [0, 1], y: 2 }, itemStyle: { color: hue(shade) }, data: [[begin, end, 0]] })),
  });
  const step = prediction.step.time_s;
  const columns = [
    { title: 'rank', value: (r) => r.rank }, { title: 'passes', value: (r) => r.pass.length }, { title: 'kernels', value: (r) => r.busy_s, show: (s) => `${seconds(s)} (${percent(s / step)})` },
    { title: 'waits for other ranks', value: (r) => r.bubble_s, show: (s) => `${seconds(s)} (${percent(s / step)})` }, { title: 'waits for what is on its way', value: (r) => r.transfers_s, show: seconds },
  ];
  const section = card('Ranks of the pipeline', 'A box is a pass of a stage over a micro-batch (2F0: the forward pass of stage 2, micro-batch 0). The gaps between boxes are the bubble. The timeline above shows one of the ranks.', chart('ranks', make, '', begun), behind('ranks-numbers', 'Numbers', columns, () => all));
  section.id = 'ranks-card';
  return [section];
}
