// When the kernels of one steady step run, and when the host issued them. Drag or scroll to zoom.
import { axis, chart } from '../chart.js';
import { card, escape } from '../dom.js';
import { seconds, words } from '../format.js';
import { colour } from '../palette.js';

/** Kernels as boxes; those narrower than half a pixel are joined with their neighbour of the same class. */
function box(params, api) {
  const [x, y] = api.coord([api.value(0), api.value(3)]);
  const end = api.coord([api.value(1), 0])[0];
  const height = api.size([0, 1])[1] * 0.62;
  const { x: left, width } = params.coordSys;
  const from = Math.max(x, left);
  const to = Math.min(Math.max(end, x + 0.5), left + width);
  if (to <= from) return null;
  return { type: 'rect', shape: { x: from, y: y - height / 2, width: to - from, height }, style: { fill: api.visual('color') } };
}

/** `withHost`: a lane for when each launch was issued, which begins before the step does on the GPU. */
export function timeline({ groups, spans, classes, prediction }, withHost = true) {
  const used = [...new Set(spans.stream)].sort((a, b) => a - b); // streams that launch something in this step
  const lanes = [...(withHost ? ['host issues'] : []), ...used.map((stream) => (stream === 0 ? 'GPU' : spans.stream_names[stream]))];
  const kHost = 0;
  const lane = (stream) => (withHost ? 1 : 0) + used.indexOf(stream);
  const rows = classes.map(() => []);
  spans.group.forEach((group, i) => {
    const g = groups[group];
    rows[classes.indexOf(g.class)].push({ value: [spans.start_us[i], spans.start_us[i] + spans.duration_us[i], group, lane(spans.stream[i])], kernel: i });
  });
  const issued = (withHost ? spans.issued_us : []).map((t, i) => ({ value: [t, t, spans.group[i], kHost], kernel: i }));
  const make = () => ({
    grid: { left: 12, right: 24, top: 40, bottom: 64, containLabel: true },
    legend: { top: 0, data: classes.filter((c, i) => rows[i].length).map(words) },
    tooltip: {
      trigger: 'item',
      formatter: ({ data }) => {
        const g = groups[data.value[2]];
        const i = data.kernel;
        return `<b>${escape(g.name)}</b><br>${g.modules?.length ? `of ${escape(g.modules.map(words).join(', '))}<br>` : ''}${escape(g.shape)}<br>${escape(spans.phase_names[spans.phase[i]])}, kernel ${i + 1} of ${spans.group.length}<br>` +
          `issued ${seconds(spans.issued_us[i] * 1e-6)}, starts ${seconds(spans.start_us[i] * 1e-6)}, takes ${seconds(spans.duration_us[i] * 1e-6)}<br>limited by ${words(g.limiter)}`;
      },
    },
    xAxis: axis({ type: 'value', min: withHost ? Math.min(0, ...spans.issued_us.slice(0, 1)) : 0, max: Math.max(prediction.step.time_s * 1e6, ...spans.start_us.slice(-1)), axisLabel: { formatter: (v) => seconds(v * 1e-6) } }),
    yAxis: axis({ type: 'category', data: lanes, splitLine: { show: false }, axisLabel: { fontSize: 13, width: 120, overflow: 'break' } }),
    dataZoom: [{ type: 'inside', filterMode: 'weakFilter' }, { type: 'slider', height: 20, bottom: 8, filterMode: 'weakFilter', labelFormatter: (v) => seconds(v * 1e-6) }],
    series: [
      ...classes.map((name, i) => ({ type: 'custom', name: words(name), renderItem: box, encode: { x: [0, 1], y: 3 }, dimensions: ['start', 'end', 'group', 'row'], itemStyle: { color: colour(name) }, data: rows[i] })),
      ...(withHost ? [{ type: 'custom', name: 'issued', renderItem: box, encode: { x: [0, 1], y: 3 }, dimensions: ['start', 'end', 'group', 'row'], itemStyle: { color: colour('launch') }, data: issued }] : []),
    ],
  });
  const about = withHost ? 'Below, the host returns from each launch call; above, the GPU works the kernels off, a line a stream. White between the boxes is the GPU waiting.' : 'The kernels of the same stretch of time, a line a stream.';
  return card('Timeline of one step', about, chart('timeline', make, withHost ? '' : 'short'));
}
