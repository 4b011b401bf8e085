// Memory over the step by what it holds, with the peak marked and the device's end.
import { axis, bytesAxis, chart, draw, pairs } from '../chart.js';
import { card, escape } from '../dom.js';
import { bytes, seconds, words } from '../format.js';
import { colour, css } from '../palette.js';
import { drawnArea } from '../shapes.js';

export function memory({ prediction, memory: run, categories }) {
  if (!run.at_us.length) {
    const oom = prediction.memory?.out_of_memory;
    return card('Memory', oom ? `Memory runs out at ${words(oom.op)} (${words(oom.phase)}): a tensor needs ${bytes(oom.requested_bytes)}, and ${bytes(oom.missing_bytes)} are missing.` : 'No allocations were recorded.');
  }
  const totals = run.at_us.map((_, i) => categories.reduce((sum, __, c) => sum + run.bytes[c][i], 0));
  const peak = totals.indexOf(Math.max(...totals));
  const present = categories.map((name, c) => ({ name, c })).filter(({ c }) => run.bytes[c].some((b) => b > 0));
  let hidden = {}; // by the legend
  const begun = (drawn) => {
    drawn.off('legendselectchanged');
    drawn.on('legendselectchanged', ({ selected }) => {
      hidden = Object.fromEntries(Object.entries(selected).map(([name, shown]) => [name, !shown]));
      draw();
    });
  };
  /** Where each category ends that is shown, from the first on: each lies on the one before. */
  const piled = () => {
    const piles = [run.at_us.map(() => 0)];
    for (const { name, c } of present) piles.push(hidden[words(name)] ? piles.at(-1) : piles.at(-1).map((below, i) => below + run.bytes[c][i]));
    return piles;
  };
  const make = () => {
    const piles = piled();
    return {
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
      yAxis: bytesAxis(Math.max(...totals, ...run.reserved)),
      dataZoom: [{ type: 'inside', filterMode: 'none' }, { type: 'slider', height: 20, bottom: 8, filterMode: 'none', labelFormatter: (v) => seconds(v * 1e-6) }],
      series: [
        ...present.map(({ name }, n) => ({
          type: 'custom', name: words(name), renderItem: drawnArea(run.at_us, piles[n], piles[n + 1], { opacity: 0.85 }), encode: { x: [0, 1] }, itemStyle: { color: colour(name) }, data: [[run.at_us[0], run.at_us.at(-1)]], tooltip: { show: false },
        })),
        {
          type: 'line', name: 'reserved', step: 'end', showSymbol: false, itemStyle: { color: css('--ink') }, lineStyle: { width: 1.5, type: 'dashed' },
          dimensions: ['x', 'y'], data: pairs(run.at_us, run.reserved),
          markPoint: { symbol: 'pin', symbolSize: 44, itemStyle: { color: colour('orange') }, label: { formatter: 'peak', fontSize: 11, color: '#fff' }, data: [{ coord: [run.at_us[peak], totals[peak]] }] },
        },
      ],
    };
  };
  const { peak: where, peak_allocated_bytes: allocated, peak_reserved_bytes: reserved } = prediction.memory;
  const layer = where.layer >= 0 ? `, block ${where.layer}` : '';
  return card('Memory over the step', `The peak is ${bytes(allocated)}, at ${words(where.op || 'the start')} (${words(where.phase)}${layer}); the allocator reserves ${bytes(reserved)}. Each allocation is drawn at the start of the kernel that follows it.`, chart('memory', make, '', begun));
}
