// Curves that microkernels measured on real chips, with the points themselves, beside what the engines predict there.
import { axis, chart, draw, settle } from '../chart.js';
import { behind } from '../behind.js';
import { card, escape, h } from '../dom.js';
import { bandwidth, bytes, count, digits, percent, rate, seconds, words } from '../format.js';
import { css, hue, part } from '../palette.js';
import { table } from '../table.js';
import { shipped } from './ask.js';

const kShow = { 'B/s': bandwidth, 'FLOP/s': rate, us: (v) => seconds(v * 1e-6), s: seconds, B: bytes, cycles: (v) => `${digits(v)} cycles` };
const showIn = (unit) => kShow[unit] ?? ((v) => `${digits(v)} ${unit}`);
const kConditions = { bytes, shared_bytes: bytes };
const shownCondition = (key) => kConditions[key] ?? ((v) => digits(v, 4));

const kMostGroups = 12;

/** Conditions, beside the one along the curve, that tell points of one place apart: a curve for each of their values. */
export function groupKeys({ points, along }) {
  const values = (key) => new Set(points.map((p) => p.at[key])).size;
  const told = (keys) => new Set(points.map((p) => [p.x, ...keys.map((key) => p.at[key])].join())).size === points.length;
  const keys = [];
  for (const key of Object.keys(points[0].at).filter((one) => one !== along && values(one) > 1).sort((x, y) => values(x) - values(y))) {
    if (!along || told(keys) || values(key) > kMostGroups) break;
    keys.push(key);
  }
  return keys;
}

/** "loads 2, fit 1" */
export const groupOf = (point, keys) => keys.map((key) => `${words(key)} ${shownCondition(key)(point.at[key])}`).join(', ');

/** |predicted / measured - 1| of an engine over the points: [median, worst]; null where it predicts none. */
export function errorsOf(points, engine) {
  const errors = points.map((p) => Math.abs(p.predicted[engine] / p.measured - 1)).filter((e, i) => points[i].predicted[engine] !== null && Number.isFinite(e)).sort((a, b) => a - b);
  return errors.length ? [errors[errors.length >> 1], errors.at(-1)] : null;
}

const symbols = { roofline: 'triangle', analytic: 'rect', simulate: 'diamond' };

function picture(result, curve) {
  const show = showIn(curve.unit);
  const along = curve.along || 'point';
  const keys = groupKeys(curve);
  const rests = [...new Set(curve.points.map((p) => groupOf(p, keys)))];
  const xs = curve.points.map((p, i) => p.x ?? i + 1);
  const spread = Math.max(...xs) / Math.max(1e-12, Math.min(...xs.filter((x) => x > 0)));
  // Ceilings that are far away are cut off.
  const near = (v, p) => v > 0 && v < 8 * p.measured && v > p.measured / 8;
  const ys = curve.points.flatMap((p) => [p.measured, ...p.predicted.filter((v) => near(v, p))]);
  const [low, high] = [Math.min(...ys), Math.max(...ys)];
  const series = [];
  const legend = ['measured, known', 'measured, held out', ...result.engines];
  const make = () => {
    series.length = 0;
    const single = rests.length === 1;
    const inOrder = (rest) => curve.points.map((p, i) => ({ p, x: xs[i] })).filter(({ p }) => groupOf(p, keys) === rest).sort((a, b) => a.x - b.x);
    rests.forEach((rest, r) => {
      const here = inOrder(rest);
      result.engines.forEach((engine, e) => {
        const data = here.filter(({ p }) => p.predicted[e] > 0).map(({ p, x }) => ({ value: [x, p.predicted[e]], p, of: engine }));
        // Engines that say the same are drawn once.
        const before = e > 0 && here.every(({ p }) => p.predicted[e] !== null && Math.abs(p.predicted[e] / p.predicted[e - 1] - 1) < 1e-6);
        if (data.length && !before) series.push({ type: 'line', name: engine, symbol: symbols[engine], symbolSize: data.length > 60 ? 0 : 5, z: 2, itemStyle: { color: engine === 'roofline' ? hue('grey') : single ? hue(engine === 'analytic' ? 'blue' : 'green') : part(r) }, lineStyle: { width: 1.8, type: engine === 'roofline' ? 'dotted' : engine === 'simulate' ? 'dashed' : 'solid' }, data });
      });
      for (const seen of [true, false]) {
        const data = here.filter(({ p }) => p.seen === seen).map(({ p, x }) => ({ value: [x, p.measured], p, of: 'measured' }));
        if (data.length) series.push({ type: 'scatter', name: seen ? 'measured, known' : 'measured, held out', z: 4, symbol: 'circle', symbolSize: 8, itemStyle: seen ? { color: single ? hue('orange') : part(r), borderColor: css('--card'), borderWidth: 1 } : { color: css('--card'), borderColor: single ? hue('orange') : part(r), borderWidth: 2 }, data });
      }
    });
    return {
      grid: { left: 14, right: 30, top: 44, bottom: 40, containLabel: true },
      legend: { top: 0, data: legend.filter((name) => series.some((s) => s.name === name)) },
      tooltip: { trigger: 'item', formatter: ({ data: { p, of } }) => `${Object.entries(p.at).map(([k, v]) => `${escape(words(k))} ${shownCondition(k)(v)}`).join('<br>')}<br>measured: <b>${show(p.measured)}</b>${p.again === null ? '' : `, again ${show(p.again)}`}<br>${result.engines.map((name, e) => (p.predicted[e] === null ? '' : `${name}: ${show(p.predicted[e])} (${percent(p.predicted[e] / p.measured - 1)} off)`)).filter(Boolean).join('<br>')}<br>${of === 'measured' ? (p.seen ? 'known when a constant was set' : 'held out of every fit') : of}` },
      xAxis: axis({ ...(spread > 30 && Math.min(...xs) > 0 ? { type: 'log', logBase: kConditions[along] ? 2 : 10 } : { type: 'value', scale: true }), name: words(along), nameLocation: 'middle', nameGap: 28, axisLabel: { formatter: (v) => shownCondition(along)(v), hideOverlap: true } }),
      yAxis: axis({ ...(high / low > 30 ? { type: 'log', min: 10 ** Math.floor(Math.log10(low)), max: 10 ** Math.ceil(Math.log10(high)) } : { type: 'value', min: 0, max: Number((1.12 * high).toPrecision(2)) }), axisLabel: { formatter: (v) => show(v) } }),
      series,
    };
  };
  const columns = [
    ...Object.keys(curve.points[0].at).map((key) => ({ title: words(key), value: (p) => p.at[key], show: shownCondition(key) })),
    { title: 'measured', value: (p) => p.measured, show }, { title: 'again', value: (p) => p.again ?? NaN, show: (v) => (Number.isFinite(v) ? show(v) : '–') },
    ...result.engines.flatMap((name, e) => [{ title: name, value: (p) => p.predicted[e] ?? NaN, show: (v) => (Number.isFinite(v) ? show(v) : '–') }, { title: 'off', value: (p) => (p.predicted[e] ?? NaN) / p.measured - 1, show: (v) => (Number.isFinite(v) ? percent(v) : '–') }]),
    { title: 'known', text: true, value: (p) => (p.seen ? 'yes' : 'no') },
  ];
  return card(words(curve.name), `${curve.what} (${curve.source})${rests.length > 1 ? ` A colour for each of ${rests.length}: ${rests.slice(0, 8).join('; ')}${rests.length > 8 ? ' …' : ''}.` : ''}`, chart('calibration', make, 'tall'), behind('calibration-numbers', 'Numbers', columns, () => curve.points));
}

/** All curves of a chip: how far the engines are off. */
function glance(result, chosen, pick) {
  const both = (e) => (e ? `${digits(100 * e[0], 2)} / ${digits(100 * e[1], 3)} %` : '–');
  const columns = [
    { title: 'curve', text: true, value: (c) => words(c.name), show: (name, c) => h('button', { type: 'button', class: 'link', 'aria-current': c === chosen ? 'true' : undefined, onclick: () => pick(c) }, name) },
    { title: 'points', value: (c) => c.points.length, show: count },
    ...result.engines.map((name, e) => ({ title: `${name}: median / worst`, value: (c) => errorsOf(c.points, e)?.[0] ?? -1, show: (_, c) => both(errorsOf(c.points, e)) })),
    { title: 'two runs differ', value: (c) => errorsOf(c.points.filter((p) => p.again !== null).map((p) => ({ measured: p.measured, predicted: [p.again] })), 0)?.[0] ?? -1, show: (v) => (v < 0 ? '–' : percent(v)) },
  ];
  return card('All curves', 'The error of each engine against the measured points. Choose a curve to see it.', table(columns, result.curves, { id: 'curves' }));
}

export function calibrationView() {
  const place = h('div', { class: 'contents' }, card('Calibration', 'Working the curves out …'));
  let all = null;
  const state = { gpu: 0, curve: 'l2_read' };
  function fill() {
    const result = all[state.gpu];
    const curve = result.curves.find((c) => c.name === state.curve) ?? result.curves[0];
    const select = (id, label, options, value, change) => h('label', {}, `${label} `, h('select', { id, onchange: ({ target }) => { change(target.value); fill(); document.getElementById(id).focus(); } }, options.map(([v, name]) => h('option', { value: v, ...(String(v) === String(value) ? { selected: '' } : {}) }, name))));
    place.replaceChildren(...[
      card('Calibration', `Microkernels were measured on ${result.device} (${result.date}); each engine predicts the same kernels. Filled points were known when a constant was set; hollow points were held out. Engines that agree share a line.`,
        h('div', { class: 'tools' }, select('calibration-gpu', 'Chip', all.map((r, i) => [i, r.gpu]), state.gpu, (v) => { state.gpu = Number(v); }), select('calibration-curve', 'Curve', result.curves.map((c) => [c.name, words(c.name)]), curve.name, (v) => { state.curve = v; }))),
      picture(result, curve), glance(result, curve, (c) => { state.curve = c.name; fill(); document.getElementById('calibration-curve').focus(); }),
    ].map(settle));
    draw();
  }
  async function load() {
    try {
      all = await shipped('microkernels');
      fill();
    } catch (error) {
      place.replaceChildren(card('Calibration', error.message));
    }
  }
  return { elements: [place], show: () => { if (all) { if (!place.querySelector('canvas')) fill(); } else load(); } };
}
