// Every kernel under the roofs of the device: arithmetic intensity over bytes of DRAM, FLOP/s over the time it takes.
import { axis, chart } from '../chart.js';
import { card, escape } from '../dom.js';
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

function roofs(device, rightEdge) {
  return distinctPeaks(device.peaks).map((peak) => {
    const ridge = peak.flops_per_s / device.dram_bytes_per_s;
    return {
      type: 'line', silent: true, symbol: 'none', z: 1, name: peak.name, lineStyle: { color: css('--soft'), width: 1.5 },
      data: [[kLeast, kLeast * device.dram_bytes_per_s], [ridge, peak.flops_per_s], [rightEdge, peak.flops_per_s]],
      endLabel: { show: true, formatter: `${peak.name}  ${rate(peak.flops_per_s)}`, align: 'right', verticalAlign: 'bottom', offset: [-4, -3], color: css('--soft'), fontSize: 12 },
    };
  });
}

export function roofline({ groups, device, classes }) {
  const total = groups.reduce((sum, g) => sum + g.time_s, 0);
  const points = groups
    .filter((g) => g.flops > 0 && g.dram_bytes > 0 && g.time_s > kSmallest * total)
    .map((g) => ({ x: Math.max(kLeast, g.flops / g.dram_bytes), y: (g.flops * g.count) / g.time_s, g }));
  const without = groups.length - points.length;
  const right = 10 ** Math.ceil(Math.log10(Math.max(1e4, ...points.map((p) => p.x * 1.2))));
  const low = 10 ** Math.floor(Math.log10(Math.min(1e11, ...points.map((p) => p.y))));
  const make = () => ({
    grid: { left: 14, right: 24, top: 40, bottom: 34, containLabel: true },
    legend: { top: 0, data: classes.map(words) },
    tooltip: {
      trigger: 'item',
      formatter: ({ data }) => {
        const { g } = data;
        return `<b>${escape(g.name)}</b><br>${g.modules?.length ? `of ${escape(g.modules.map(words).join(', '))}<br>` : ''}${escape(g.shape)}<br>${count(g.count)} × ${seconds(g.time_s / g.count)}, limited by ${words(g.limiter)}<br>` +
          `${flops(g.flops)}, ${bytes(g.dram_bytes)} of DRAM each<br>${digits(data.value[0])} FLOP/byte, ${rate(data.value[1])}, ${bandwidth((g.dram_bytes * g.count) / g.time_s)}`;
      },
    },
    xAxis: axis({ type: 'log', min: kLeast, max: right, name: 'FLOP per byte of DRAM', nameLocation: 'middle', nameGap: 28, axisLabel: { formatter: (v) => digits(v) } }),
    yAxis: axis({ type: 'log', min: low, max: 2 * Math.max(...device.peaks.map((p) => p.flops_per_s)), axisLabel: { formatter: (v) => rate(v) } }),
    series: [
      ...roofs(device, right),
      ...classes.map((name) => ({
        type: 'scatter', name: words(name), z: 3, itemStyle: { color: colour(name), opacity: 0.75, borderColor: css('--card'), borderWidth: 0.5 },
        data: points.filter((p) => p.g.class === name).map((p) => ({ value: [p.x, p.y], g: p.g, symbolSize: 5 + 34 * Math.sqrt(p.g.time_s / total) })),
      })),
    ],
  });
  const about = `A point is a kernel and shape; its area is its share of the step. Under the slope DRAM at ${bandwidth(device.dram_bytes_per_s)} ends the climb, under a flat roof the arithmetic does.` +
    (without ? ` ${without} kernels that do no arithmetic, stay in the L2 or take less than a ten-thousandth of the step are not drawn.` : '');
  return card('Roofline', about, chart('roofline', make, 'tall'));
}
