// Memory over the step by what it holds, with the peak marked and the device's end.
import { axis, chart } from '../chart.js';
import { card, escape } from '../dom.js';
import { bytes, seconds, words } from '../format.js';
import { colour, css } from '../palette.js';

export function memory({ prediction, memory: run, categories }) {
  if (!run.at_us.length) {
    const oom = prediction.memory?.out_of_memory;
    return card('Memory', oom ? `Memory runs out at ${words(oom.op)} (${words(oom.phase)}): ${bytes(oom.missing_bytes)} are missing for a tensor of ${bytes(oom.requested_bytes)}.` : 'No allocations were recorded.');
  }
  const totals = run.at_us.map((_, i) => categories.reduce((sum, __, c) => sum + run.bytes[c][i], 0));
  const peak = totals.indexOf(Math.max(...totals));
  const present = categories.map((name, c) => ({ name, c })).filter(({ c }) => run.bytes[c].some((b) => b > 0));
  const make = () => ({
    grid: { left: 14, right: 30, top: 40, bottom: 64, containLabel: true },
    legend: { top: 0, data: [...present.map(({ name }) => words(name)), 'reserved'] },
    tooltip: {
      trigger: 'axis',
      formatter: (lines) => {
        const i = lines[0].dataIndex;
        const parts = present.filter(({ c }) => run.bytes[c][i] > 0).map(({ name, c }) => `${escape(words(name))}: ${bytes(run.bytes[c][i])}`).reverse();
        return `${seconds(run.at_us[i] * 1e-6)}<br><b>${bytes(totals[i])}</b> allocated, ${bytes(run.reserved[i])} reserved<br>${parts.join('<br>')}`;
      },
    },
    xAxis: axis({ type: 'value', min: run.at_us[0], max: run.at_us.at(-1), axisLabel: { formatter: (v) => seconds(v * 1e-6) } }),
    yAxis: axis({ type: 'value', axisLabel: { formatter: (v) => bytes(v) } }),
    dataZoom: [{ type: 'inside', filterMode: 'none' }, { type: 'slider', height: 20, bottom: 8, filterMode: 'none', labelFormatter: (v) => seconds(v * 1e-6) }],
    series: [
      ...present.map(({ name, c }) => ({
        type: 'line', name: words(name), stack: 'allocated', step: 'end', symbol: 'none', lineStyle: { width: 0 }, areaStyle: { opacity: 0.85 },
        itemStyle: { color: colour(name) }, emphasis: { disabled: true }, data: run.at_us.map((t, i) => [t, run.bytes[c][i]]),
      })),
      {
        type: 'line', name: 'reserved', step: 'end', symbol: 'none', itemStyle: { color: css('--ink') }, lineStyle: { width: 1.5, type: 'dashed' },
        data: run.at_us.map((t, i) => [t, run.reserved[i]]),
        markPoint: { symbol: 'pin', symbolSize: 44, itemStyle: { color: colour('orange') }, label: { formatter: 'peak', fontSize: 11, color: '#fff' }, data: [{ coord: [run.at_us[peak], totals[peak]] }] },
      },
    ],
  });
  const { peak: where, peak_allocated_bytes: allocated, peak_reserved_bytes: reserved } = prediction.memory;
  const layer = where.layer >= 0 ? `, block ${where.layer}` : '';
  return card('Memory over the step', `The peak of ${bytes(allocated)} is reached at ${words(where.op || 'the start')} (${words(where.phase)}${layer}); the allocator holds ${bytes(reserved)}. Allocations are drawn where the kernel that follows them starts.`, chart('memory', make));
}
