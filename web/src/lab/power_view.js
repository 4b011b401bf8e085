// The board's power and the clock of its SMs over the step, with the limit, and where the energy goes.
import { axis, chart, pairs } from '../chart.js';
import { card, escape, h, number } from '../dom.js';
import { count, digits, percent, seconds, words } from '../format.js';
import { colour, css, hue } from '../palette.js';
import { copiesOf, drawnArea } from '../shapes.js';
import { behind } from './draw.js';

const watts = (w) => `${digits(w)} W`;
const joules = (j) => (j >= 1 || j === 0 ? `${digits(j)} J` : j >= 1e-3 ? `${digits(1e3 * j)} mJ` : `${digits(1e6 * j)} µJ`);
const megahertz = (f) => `${count(Math.round(f))} MHz`;

/** [[µs, W]]: what the board draws, from each moment on; kernels side by side add up. */
export function powerCurve(spans, power, end_us) {
  const all = [...spans.start_us.map((_, kernel) => ({ kernel, shift: 0 })), ...copiesOf(spans)];
  const changes = all.flatMap(({ kernel: i, shift }) => {
    const beyond = power.power_w[i] - power.idle_w;
    const start = spans.start_us[i] + shift;
    return spans.duration_us[i] > 0 ? [[start, beyond], [start + spans.duration_us[i], -beyond]] : [];
  }).sort((a, b) => a[0] - b[0]);
  const points = [[0, power.idle_w]];
  let now = power.idle_w;
  for (const [at, change] of changes) {
    now += change;
    if (at <= points.at(-1)[0] + 1e-9) points.at(-1)[1] = now;
    else points.push([at, now]);
  }
  points.push([Math.max(end_us, points.at(-1)[0]), points.at(-1)[1]]);
  return points.map(([at, w]) => [at, Math.round(w * 10) / 10]);
}

function overTime({ groups, spans, power, prediction }) {
  const end = prediction.step.time_s * 1e6;
  const curve = powerCurve(spans, power, end);
  const clocks = spans.start_us.map((at, i) => [at, power.clock_mhz[i]]).filter(([, f], i) => i === 0 || f !== power.clock_mhz[i - 1]);
  clocks.push([end, clocks.at(-1)?.[1]]);
  const line = (name, value, stroke) => ({ name, yAxis: value, lineStyle: { color: stroke, type: 'dashed' }, label: { formatter: `${name} ${watts(value)}`, position: 'insideEndTop', color: stroke } });
  const most = Math.max(power.limit_w, ...curve.map(([, w]) => w));
  const kernelAt = (at) => {
    let found = -1;
    for (let i = 0; i < spans.start_us.length; i += 1) if (spans.start_us[i] <= at && at <= spans.start_us[i] + spans.duration_us[i]) found = i;
    return found;
  };
  const x = (gridIndex, more) => axis({ type: 'value', gridIndex, min: 0, max: end, ...more });
  return chart('power', () => ({
    grid: [{ left: 88, right: 24, top: 34, height: 190 }, { left: 88, right: 24, top: 262, height: 70 }],
    legend: { top: 0, data: ['power', 'clock'] },
    tooltip: {
      trigger: 'axis',
      formatter: ([first]) => {
        const at = first.axisValue;
        const i = kernelAt(at);
        return i < 0 ? `${seconds(at * 1e-6)}<br>nothing runs: ${watts(power.idle_w)}` : `${seconds(at * 1e-6)}<br><b>${watts(power.power_w[i])}</b> at ${megahertz(power.clock_mhz[i])}<br>${escape(groups[spans.group[i]].name)}<br>${escape(words(groups[spans.group[i]].class))}`;
      },
    },
    axisPointer: { link: [{ xAxisIndex: 'all' }] },
    xAxis: [x(0, { axisLabel: { show: false } }), x(1, { axisLabel: { formatter: (v) => seconds(v * 1e-6) } })],
    yAxis: [axis({ type: 'value', gridIndex: 0, min: 0, max: Math.ceil(most / 100) * 100, axisLabel: { formatter: watts } }), axis({ type: 'value', gridIndex: 1, scale: true, splitNumber: 2, axisLabel: { formatter: (v) => megahertz(v) } })],
    dataZoom: [{ type: 'inside', xAxisIndex: [0, 1], filterMode: 'none' }, { type: 'slider', xAxisIndex: [0, 1], height: 18, bottom: 4, filterMode: 'none', labelFormatter: (v) => seconds(v * 1e-6) }],
    // The power of thousands of kernels is one shape; the tooltip hangs on the line of the clocks, which has few points.
    series: [
      {
        type: 'custom', name: 'power', renderItem: drawnArea(curve.map(([at]) => at), curve.map(() => 0), curve.map(([, w]) => w), { fillOpacity: 0.18, stroke: hue('orange'), lineWidth: 1 }),
        encode: { x: [0, 1] }, data: [[0, end]], itemStyle: { color: hue('orange') }, tooltip: { show: false },
        markLine: { symbol: 'none', silent: true, data: [...(power.limit_w > 0 ? [line('limit', power.limit_w, css('--bad'))] : []), line('mean', power.average_w, css('--ink'))] },
      },
      { type: 'line', name: 'clock', xAxisIndex: 1, yAxisIndex: 1, step: 'end', showSymbol: false, dimensions: ['x', 'y'], data: pairs(clocks.map(([at]) => at), clocks.map(([, f]) => f)), itemStyle: { color: hue('blue') }, lineStyle: { width: 1.5 } },
    ],
  }));
}

function numbersBehind({ groups, spans, power }) {
  const columns = [
    { title: 'starts', value: (i) => spans.start_us[i] * 1e-6, show: seconds }, { title: 'takes', value: (i) => spans.duration_us[i] * 1e-6, show: seconds }, { title: 'kernel', text: true, class: 'name', value: (i) => groups[spans.group[i]].name },
    { title: 'power', value: (i) => power.power_w[i], show: watts }, { title: 'clock', value: (i) => power.clock_mhz[i], show: megahertz },
  ];
  return behind('power-numbers', 'The first 500 kernels', columns, () => spans.start_us.slice(0, 500).map((_, i) => i));
}

/** Kernels with their power as rows of a file. */
export function powerRows({ groups, spans, power }) {
  return [['start_us', 'duration_us', 'power_w', 'clock_mhz', 'class', 'kernel'], ...spans.start_us.map((start, i) => [start, spans.duration_us[i], power.power_w[i], power.clock_mhz[i], groups[spans.group[i]].class, groups[spans.group[i]].name])];
}

function energy({ power, prediction }) {
  const rows = Object.entries(power.energy_by_class_j).filter(([, j]) => j > 0).sort((a, b) => a[1] - b[1]);
  const bars = chart('energy', () => ({
    grid: { left: 8, right: 130, top: 6, bottom: 4, containLabel: true },
    tooltip: { trigger: 'item', formatter: (p) => `${escape(words(p.name))}: <b>${joules(p.value)}</b>, ${percent(p.value / power.energy_j)}` },
    xAxis: axis({ type: 'value', show: false }),
    yAxis: axis({ type: 'category', data: rows.map(([key]) => key), axisLine: { show: false }, axisTick: { show: false }, axisLabel: { formatter: words, fontSize: 13 } }),
    series: [{
      type: 'bar', barMaxWidth: 20, data: rows.map(([key, value]) => ({ value, itemStyle: { color: colour(key), borderRadius: 3 } })),
      label: { show: true, position: 'right', color: css('--ink'), formatter: (p) => `${joules(p.value)}  ${percent(p.value / power.energy_j)}` },
    }],
  }), 'short');
  const columns = [{ title: 'what', text: true, value: (r) => words(r[0]) }, { title: 'energy', value: (r) => r[1], show: joules }, { title: 'of the step', value: (r) => r[1] / power.energy_j, show: percent }];
  const { step } = prediction;
  return card('Energy of the step', `${joules(step.energy_j)} (${joules(step.energy_low_j)} to ${joules(step.energy_high_j)}): what kernels of each class draw beyond idling, and what the board draws idling all the while.`, bars, behind('energy-numbers', 'Numbers', columns, () => [...rows].reverse()));
}

export function powerView(p) {
  const { power, prediction } = p;
  const { step } = prediction;
  if (!p.spans.start_us.length) return [card('Power', 'The step has no kernels.')];
  const most = p.spans.start_us.reduce((found, _, i) => (power.power_w[i] > power.power_w[found] ? i : found), 0);
  const [low, high] = power.clock_mhz.reduce(([l, u], f) => [Math.min(l, f), Math.max(u, f)], [Infinity, 0]);
  const numbers = h('div', { class: 'numbers', id: 'power-summary' },
    number('Power of the board', watts(step.power_w), power.limit_w > 0 ? `${percent(step.power_w / power.limit_w)} of the limit of ${watts(power.limit_w)}` : 'no limit is known'),
    number('Energy', joules(step.energy_j), `${joules(step.energy_j / Math.max(1e-12, step.time_s * step.tokens_per_s))} a token`),
    number('Most of a kernel', watts(power.power_w[most]), p.groups[p.spans.group[most]].name),
    number('Clock', low < high ? `${count(Math.round(low))} to ${megahertz(high)}` : megahertz(high), prediction.limited_by.power > 0 ? `the limit adds ${seconds(prediction.limited_by.power)}` : 'the limit does not slow it'),
    number('Idling', watts(power.idle_w), 'at this clock and nothing running'));
  const section = card('Power and clock over time', 'Power of the board while each kernel runs, and the clock of the SMs. The limit applies to the mean over many kernels, so a single kernel may exceed it for some milliseconds. All clocks fall where the mean would exceed it.', numbers, overTime(p), numbersBehind(p));
  section.id = 'power-card';
  return [section, energy(p)];
}
