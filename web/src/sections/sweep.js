// All points of a sweep as a picture with two axes to choose, the answer of its goal marked, and as a table.
import { axis, bytesAxis, chart, draw } from '../chart.js';
import { card, escape, h } from '../dom.js';
import { bytes, count } from '../format.js';
import { colour, css, hue, part } from '../palette.js';
import { table } from '../table.js';
import { heatMap } from './heat_map.js';
import { parallelCoordinates } from './parallel_coordinates.js';
import { answering, choice, kMetrics } from './sweep_metrics.js';

const kMostRows = 1000;

/** Logarithmic where the values span more than a decade and a half; bytes at powers of two. */
function scaled(values, { show }, more) {
  const label = { axisLabel: { formatter: (v) => show(v), hideOverlap: true }, ...more };
  const most = Math.max(...values);
  if (most / Math.min(...values) > 30) return axis({ type: 'log', ...(show === bytes && { logBase: 2 }), ...label });
  return show === bytes ? bytesAxis(most, label) : axis({ type: 'value', scale: true, ...label });
}

/** The points drawn by two measures; coloured by the values of one axis. */
function scatter(sweep, points, metrics) {
  const wanted = (sweep.goal.of ?? []).filter((key) => metrics.some((m) => m.key === key));
  const state = { x: wanted[0] ?? 'step_time_s', y: wanted[1] ?? 'memory_bytes', by: sweep.axes[0].name };
  const best = answering(sweep);
  const make = () => {
    const [x, y] = [state.x, state.y].map((key) => metrics.find((m) => m.key === key));
    const values = sweep.axes.find((a) => a.name === state.by).values.map(String);
    const place = (p) => ({ value: [p[x.key], p[y.key]], p });
    const shown = points.filter((p) => p[x.key] > 0 && p[y.key] > 0);
    const inOrder = shown.filter((p) => best.has(p.point)).sort((a, b) => a[x.key] - b[x.key]);
    return {
      grid: { left: 14, right: 30, top: 64, bottom: 40, containLabel: true },
      legend: { top: 0, type: 'plain', data: [...values.slice(0, 12), 'answer'] },
      tooltip: {
        trigger: 'item',
        formatter: ({ data }) => data.p && Object.entries(data.p.at).map(([key, value]) => `${escape(key)} = ${escape(value)}`).join('<br>') + '<br>' +
          metrics.filter((m) => data.p[m.key] > 0).map((m) => `${m.name}: <b>${m.show(data.p[m.key])}</b>`).join('<br>') + (data.p.fits ? '' : '<br>does not fit'),
      },
      xAxis: scaled(shown.map((p) => p[x.key]), x, { name: x.name, nameLocation: 'middle', nameGap: 30 }),
      yAxis: scaled(shown.map((p) => p[y.key]), y, { name: y.name, nameTextStyle: { align: 'left', color: css('--soft') } }),
      series: [
        ...values.map((value, i) => ({
          type: 'scatter', name: value, symbolSize: 8, itemStyle: { color: i < 6 ? part(i) : hue('grey'), opacity: 0.75 }, large: false,
          data: shown.filter((p) => String(p.at[state.by]) === value).map((p) => ({ ...place(p), symbol: p.fits ? 'circle' : 'emptyCircle', itemStyle: p.fits ? undefined : { opacity: 0.3 } })),
        })),
        { type: 'line', name: 'answer', z: 5, symbol: 'diamond', symbolSize: 13, itemStyle: { color: colour('activations') }, lineStyle: { width: sweep.goal.search === 'pareto' ? 1.5 : 0 }, data: inOrder.map(place) },
      ],
    };
  };
  const again = (key) => (value) => { state[key] = value; draw(); };
  const named = metrics.map((m) => [m.key, m.name]);
  return h('div', {}, h('div', { class: 'tools' }, choice('across', named, state.x, again('x')), choice('up', named, state.y, again('y')), choice('colour', sweep.axes.map((a) => [a.name, a.name]), state.by, again('by'))), chart('sweep', make, 'tall'));
}

function rows(sweep, points, metrics, id) {
  const columns = [
    { title: 'point', value: (p) => p.point, show: (n) => count(n) },
    ...sweep.axes.map((a) => ({ title: a.name, text: true, value: (p) => (a.values.every((v) => v !== '' && Number.isFinite(Number(v))) ? Number(p.at[a.name]) : String(p.at[a.name])), show: (v) => String(v) })),
    ...metrics.map((m) => ({ title: m.name, value: (p) => p[m.key], show: (v) => m.show(v) })),
    { title: 'fits', text: true, value: (p) => (p.fits ? 'yes' : 'no'), show: (fits) => h('span', { class: fits === 'yes' ? 'good' : 'bad' }, fits) },
  ];
  return table(columns, points, { id, search: (p) => Object.values(p.at).join(' '), placeholder: 'value of an axis' });
}

export function sweep(data) {
  const ran = data.points.filter((p) => p.error === undefined);
  const failed = data.points.length - ran.length;
  const metrics = kMetrics.filter((m) => ran.some((p) => p[m.key] > 0));
  const best = data.best.map((n) => ran.find((p) => p.point === n)).filter(Boolean);
  const words = { none: 'No goal was set.', fastest: 'The fastest that fits.', cheapest: 'The cheapest that reaches the rate.', pareto: 'No other point is better in one and not worse in another.' };
  return [
    h('section', {}, h('h1', {}, data.title || 'Sweep'), h('p', {}, `${count(data.points.length)} points over ${data.axes.map((a) => `${a.name} (${a.values.length})`).join(', ')}` + (failed ? `; ${count(failed)} cannot run` : ''))),
    ...heatMap(data, ran, metrics),
    card('Points', 'Hollow points do not fit; diamonds answer the goal.', scatter(data, ran, metrics)),
    ...parallelCoordinates(data, ran, metrics, (kept) => rows(data, kept.slice(0, kMostRows), metrics, 'brushed')),
    card('Answer', words[data.goal.search] ?? '', rows(data, best, metrics, 'best')),
    card('All points', ran.length > kMostRows ? `The first ${count(kMostRows)} of ${count(ran.length)}; the JSON and CSV files hold all.` : 'Click a column head to sort.', rows(data, ran.slice(0, kMostRows), metrics, 'points')),
  ];
}
