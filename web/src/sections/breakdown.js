// Where the step's time goes: by class of kernel and by what limits it. Both bars add up to the step.
import { axis, chart } from '../chart.js';
import { card, escape } from '../dom.js';
import { percent, seconds, words } from '../format.js';
import { colour, css } from '../palette.js';

function bars(id, values) {
  const entries = Object.entries(values).filter(([, s]) => s > 0).sort((a, b) => a[1] - b[1]);
  const total = entries.reduce((sum, [, s]) => sum + s, 0);
  return chart(id, () => ({
    grid: { left: 8, right: 120, top: 6, bottom: 4, containLabel: true },
    tooltip: { trigger: 'item', formatter: (p) => `${escape(words(p.name))}: <b>${seconds(p.value)}</b>, ${percent(p.value / total)}` },
    xAxis: axis({ type: 'value', show: false }),
    yAxis: axis({ type: 'category', data: entries.map(([key]) => key), axisLine: { show: false }, axisTick: { show: false }, axisLabel: { formatter: words, fontSize: 13 } }),
    series: [{
      type: 'bar', barMaxWidth: 20,
      data: entries.map(([key, value]) => ({ value, itemStyle: { color: colour(key), borderRadius: 3 } })),
      label: { show: true, position: 'right', color: css('--ink'), formatter: (p) => `${seconds(p.value)}  ${percent(p.value / total)}` },
    }],
  }), 'short');
}

export function breakdown({ prediction }) {
  const left = card('Time by class', 'Kernels by what they do; idle is the GPU waiting.', bars('time-by-class', prediction.time_by_class));
  const right = card('Time by limiter', 'What each kernel would have to get more of to be faster.', bars('limited-by', prediction.limited_by));
  left.classList.add('half');
  right.classList.add('half');
  return [left, right];
}
