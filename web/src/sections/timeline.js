// When the kernels of one steady step run, and when the host issued them. Drag or scroll to zoom.
import { axis, chart } from '../chart.js';
import { card, escape } from '../dom.js';
import { seconds, words } from '../format.js';
import { colour } from '../palette.js';
import { runSays, runSeries, runsOf } from './runs.js';
import { copiesOf, drawnBoxes, follow, hatched, underPointer } from '../shapes.js';

const kSlack = 2; // px beside a box that still mean it

/** Of `rows` in a lane the one at a moment, or the nearest within some pixels. */
function nearest(rows, at, lane, pixel) {
  let found = null;
  let least = kSlack * pixel;
  for (const row of rows) {
    if (row.lane !== lane) continue;
    const away = Math.max(row.from - at, at - row.to, 0);
    if (away <= least) [found, least] = [row, away];
  }
  return found;
}

/** The kernel that the pointer is over on this chart, by its place in the step; -1 where none is. */
export const kernelUnder = (drawn) => underPointer(drawn)?.kernel ?? -1;

/** `withHost`: lanes for the phases and layers above, and below one for when each launch was issued, which begins before the
 *  step does on the GPU. */
export function timeline({ groups, spans, classes, prediction }, withHost = true) {
  const used = [...new Set(spans.stream)].sort((a, b) => a - b); // streams that launch something in this step
  const lanes = [...(withHost ? ['host issues'] : []), ...used.map((stream) => (stream === 0 ? 'GPU' : spans.stream_names[stream]))];
  const further = copiesOf(spans);
  const runs = (withHost ? [['layers', true], ['phases', false]] : []).map(([name, byLayer]) => ({ name, all: runsOf(spans, further, byLayer) })).filter(({ all }) => all.length);
  for (const { name, all } of runs) {
    for (const run of all) run.lane = lanes.length;
    lanes.push(name);
  }
  const kHost = 0;
  const lane = (stream) => (withHost ? 1 : 0) + used.indexOf(stream);
  const rows = classes.map(() => []);
  const again = classes.map(() => []); // further runs of what was simulated once
  for (const { kernel, shift } of further) again[classes.indexOf(groups[spans.group[kernel]].class)].push({ from: spans.start_us[kernel] + shift, to: spans.start_us[kernel] + shift + spans.duration_us[kernel], lane: lane(spans.stream[kernel]), kernel, shift });
  spans.group.forEach((group, kernel) => rows[classes.indexOf(groups[group].class)].push({ from: spans.start_us[kernel], to: spans.start_us[kernel] + spans.duration_us[kernel], lane: lane(spans.stream[kernel]), kernel }));
  const issued = (withHost ? spans.issued_us : []).map((t, kernel) => ({ from: t, to: t, lane: kHost, kernel }));
  const issuedAgain = (withHost ? further : []).map(({ kernel, shift }) => ({ from: spans.issued_us[kernel] + shift, to: spans.issued_us[kernel] + shift, lane: kHost, kernel, shift }));
  for (const all of [...rows, ...again, issued, issuedAgain]) all.sort((a, b) => a.from - b.from);
  const everything = [...rows, ...again, issued, issuedAgain, ...runs.map(({ all }) => all)].flat();
  const begin = withHost ? Math.min(0, ...spans.issued_us.slice(0, 1)) : 0;
  const end = Math.max(prediction.step.time_s * 1e6, ...spans.start_us.slice(-1));
  const told = ({ kernel: i, shift = 0 }) => {
    const g = groups[spans.group[i]];
    return `<b>${escape(g.name)}</b><br>${g.modules?.length ? `of ${escape(g.modules.map(words).join(', '))}<br>` : ''}${escape(g.shape)}<br>${escape(spans.phase_names[spans.phase[i]])}, kernel ${i + 1} of ${spans.group.length}${shift ? ', run again' : ''}<br>` +
      `issued ${seconds((spans.issued_us[i] + shift) * 1e-6)}, starts ${seconds((spans.start_us[i] + shift) * 1e-6)}, takes ${seconds(spans.duration_us[i] * 1e-6)}<br>limited by ${words(g.limiter)}`;
  };
  let drawn;
  const begun = (chart) => {
    drawn = chart;
    follow(chart, (at, at_lane, pixel) => nearest(everything, at, at_lane, pixel));
  };
  // A class is one datum that is drawn as all of its kernels.
  const series = (name, all, fill) => ({ type: 'custom', name, renderItem: drawnBoxes(all, end), encode: { x: [0, 1], y: 2 }, itemStyle: { color: fill }, data: [[begin, end, 0]] });
  const make = () => ({
    grid: { left: 12, right: 24, top: 40, bottom: 64, containLabel: true },
    legend: { top: 0, data: classes.filter((c, i) => rows[i].length).map(words) },
    tooltip: { trigger: 'item', formatter: () => { const row = underPointer(drawn); return !row ? '' : row.kernels ? runSays(row) : told(row); } },
    xAxis: axis({ type: 'value', min: begin, max: end, axisLabel: { formatter: (v) => seconds(v * 1e-6) } }),
    yAxis: axis({ type: 'category', data: lanes, splitLine: { show: false }, axisLabel: { fontSize: 13, width: 120, overflow: 'break' } }),
    dataZoom: [{ type: 'inside', filterMode: 'none' }, { type: 'slider', height: 20, bottom: 8, filterMode: 'none', labelFormatter: (v) => seconds(v * 1e-6) }],
    series: [
      ...runs.map(({ name, all }) => runSeries(name, all, end)),
      ...classes.map((name, i) => series(words(name), rows[i], colour(name))), ...(withHost ? [series('issued', issued, colour('launch'))] : []),
      ...(further.length ? [...classes.flatMap((name, i) => (again[i].length ? [series(words(name), again[i], hatched(colour(name)))] : [])), ...(withHost ? [series('issued', issuedAgain, hatched(colour('launch')))] : [])] : []),
    ],
  });
  const about = withHost ? 'The bottom lane shows when the host returns from each launch call. The lanes above show the kernels on the GPU, one line per stream, then its layers and phases. The GPU waits where no box is drawn. Hatched boxes repeat a micro-batch that was simulated once.' : 'The kernels of the same time window, one line per stream.';
  return card('Timeline of one step', about, chart('timeline', make, withHost ? 'tall' : 'short', begun));
}
