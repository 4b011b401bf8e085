// Every kernel under the roofs of the device: arithmetic intensity over the bytes of one level of the memory, FLOP/s over the
// time it takes.
import { axis, chart, draw } from '../chart.js';
import { card, escape, h } from '../dom.js';
import { bandwidth, bytes, count, digits, flops, rate, seconds, words } from '../format.js';
import { colour, css } from '../palette.js';

const kLeast = 1 / 64; // FLOP/byte: left edge of the picture
const kSmallest = 1e-4; // share of the step from which a kernel is drawn

/** Peaks of the same height share a roof. */
function distinctPeaks(peaks) {
  const heights = new Map();
  for (const peak of peaks) heights.set(peak.flops_per_s, [...(heights.get(peak.flops_per_s) ?? []), peak.name]);
  return [...heights].map(([flops_per_s, names]) => ({ name: names.join(', '), flops_per_s }));
}

/** Levels whose bytes a kernel is held against, and how fast the device is there. */
export const kLevels = {
  dram: { name: 'DRAM', title: 'DRAM', bytes: (g) => g.dram_bytes, rate: (d) => d.dram_bytes_per_s },
  l2: { name: 'L2', title: 'L2', bytes: (g) => g.l2_bytes, rate: (d) => d.l2_bytes_per_s },
  shared: { name: 'L1 and shared memory', title: 'L1 and shared memory', bytes: (g) => g.loaded_bytes, rate: (d) => d.shared_bytes_per_s },
};
let chosen = 'dram'; // as long as the page is open

/** The level that is looked at, of those that the data knows. */
export const levelOf = ({ groups }) => kLevels[groups[0]?.l2_bytes === undefined ? 'dram' : chosen];

function roofs(device, rate_at, rightEdge) {
  return distinctPeaks(device.peaks).map((peak) => {
    const ridge = peak.flops_per_s / rate_at;
    return {
      type: 'line', silent: true, symbol: 'none', z: 1, name: peak.name, lineStyle: { color: css('--soft'), width: 1.5 },
      data: [[kLeast, kLeast * rate_at], [ridge, peak.flops_per_s], [rightEdge, peak.flops_per_s]],
      endLabel: { show: true, formatter: matchMedia('(max-width: 600px)').matches ? peak.name : `${peak.name}  ${rate(peak.flops_per_s)}`, align: 'right', verticalAlign: 'bottom', offset: [-4, -3], color: css('--soft'), fontSize: 12 },
    };
  });
}

export function roofline({ groups, device, classes }, chose = draw) {
  const total = groups.reduce((sum, g) => sum + g.time_s, 0);
  const make = () => {
    const level = levelOf({ groups });
    const points = groups
      .map((g, i) => ({ x: Math.max(kLeast, g.flops / level.bytes(g)), y: (g.flops * g.count) / g.time_s, g, i }))
      .filter(({ g }) => g.flops > 0 && level.bytes(g) > 0 && g.time_s > kSmallest * total);
    const right = 10 ** Math.ceil(Math.log10(Math.max(1e4, ...points.map((p) => p.x * 1.2))));
    const low = 10 ** Math.floor(Math.log10(Math.min(1e11, ...points.map((p) => p.y))));
    return {
      grid: { left: 14, right: 24, top: 40, bottom: 34, containLabel: true },
      legend: { top: 0, data: classes.map(words) },
      tooltip: {
        trigger: 'item',
        formatter: ({ data }) => {
          const g = groups[data[3]];
          return `<b>${escape(g.name)}</b><br>${g.modules?.length ? `of ${escape(g.modules.map(words).join(', '))}<br>` : ''}${escape(g.shape)}<br>${count(g.count)} × ${seconds(g.time_s / g.count)}, limited by ${words(g.limiter)}<br>` +
            `${flops(g.flops)}, ${bytes(level.bytes(g))} of ${level.name} each<br>${digits(data[0])} FLOP/byte, ${rate(data[1])}, ${bandwidth((level.bytes(g) * g.count) / g.time_s)}`;
        },
      },
      xAxis: axis({ type: 'log', min: kLeast, max: right, name: `FLOP per byte of ${level.name}`, nameLocation: 'middle', nameGap: 28, axisLabel: { formatter: (v) => digits(v) } }),
      yAxis: axis({ type: 'log', min: low, max: 2 * Math.max(...device.peaks.map((p) => p.flops_per_s)), axisLabel: { formatter: (v) => rate(v) } }),
      series: [
        ...roofs(device, level.rate(device), right),
        ...classes.map((name) => ({
          type: 'scatter', name: words(name), z: 3, itemStyle: { color: colour(name), opacity: 0.75, borderColor: css('--card'), borderWidth: 0.5 },
          symbolSize: ([, , size]) => size,
          data: points.filter((p) => p.g.class === name).map((p) => [p.x, p.y, 5 + 34 * Math.sqrt(p.g.time_s / total), p.i]), // the last is the kernel
        })),
      ],
    };
  };
  const about = () => {
    const level = levelOf({ groups });
    const without = groups.filter((g) => !(g.flops > 0 && level.bytes(g) > 0 && g.time_s > kSmallest * total)).length;
    return `Each point is a kernel; its area is its share of the step. ${level.name} at ${bandwidth(level.rate(device))} limits kernels under the slope, arithmetic those under a flat roof.` +
      (without ? ` ${count(without)} kernels without arithmetic or bytes are left out.` : '');
  };
  const picture = chart('roofline', make, 'tall');
  if (groups[0]?.l2_bytes === undefined) return card('Roofline', about(), picture);
  const select = h('select', { id: 'roofline-level', onchange: ({ target }) => { chosen = target.value; section.querySelector('p').textContent = about(); chose(); } },
    Object.entries(kLevels).map(([key, level]) => h('option', { value: key, ...(key === chosen && { selected: '' }) }, level.title)));
  const section = card('Roofline', about(), h('div', { class: 'tools corner' }, h('label', { for: 'roofline-level' }, 'Bytes of'), select), picture);
  section.classList.add('cornered');
  return section;
}
