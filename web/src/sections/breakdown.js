// Where the step's time goes: by class of kernel and by limiter. Both charts add up to the step.
import { axis, chart } from '../chart.js';
import { card, escape } from '../dom.js';
import { limitName, percent, seconds, words } from '../format.js';
import { colour, css } from '../palette.js';

function bars(id, values, name = words) {
  const entries = Object.entries(values).filter(([, s]) => s > 0).sort((a, b) => a[1] - b[1]);
  const total = entries.reduce((sum, [, s]) => sum + s, 0);
  return chart(id, () => ({
    grid: { left: 2, right: 104, top: 2, bottom: 2, containLabel: true },
    tooltip: { trigger: 'item', formatter: (p) => `${escape(name(p.name))}: <b>${seconds(p.value)}</b>, ${percent(p.value / total)}` },
    xAxis: axis({ type: 'value', show: false }),
    yAxis: axis({ type: 'category', data: entries.map(([key]) => key), axisLine: { show: false }, axisTick: { show: false }, axisLabel: { formatter: name, fontSize: 12 } }),
    series: [{
      type: 'bar', barMaxWidth: 20,
      data: entries.map(([key, value]) => ({ value, itemStyle: { color: colour(key), borderRadius: 3 } })),
      label: { show: true, position: 'right', color: css('--ink'), formatter: (p) => `${seconds(p.value)}  ${percent(p.value / total)}` },
    }],
  }), 'short');
}

export function breakdown({ prediction }) {
  const left = card('Time by class', 'Kernels by kind; idle: the GPU waits.', bars('time-by-class', prediction.time_by_class));
  const right = card('Time by limiter', 'More of it makes these kernels faster.', bars('limited-by', prediction.limited_by, limitName));
  return [left, right];
}
