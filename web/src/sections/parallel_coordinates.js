// A sweep as parallel coordinates: a line a point across all axes and quantities. A stretch of an axis is brushed with the
// mouse, or with the fields below; the table shows what is left.
import { chart, chartAt, draw } from '../chart.js';
import { card, h } from '../dom.js';
import { count } from '../format.js';
import { css, hue } from '../palette.js';
import { answering, changing, shortNames } from './sweep_metrics.js';

const kFirst = ['step_time_s', 'memory_bytes', 'tokens_per_s', 'mfu', 'power_w']; // shown until others are chosen

/** Points that lie within all limits: {key: [least, most]} of quantities, {name: value} of axes. */
export function withinLimits(points, { ranges, values }) {
  return points.filter((p) => Object.entries(ranges).every(([key, [low, high]]) => p[key] >= low && p[key] <= high) && Object.entries(values).every(([name, value]) => String(p.at[name]) === value));
}

/** `rows` makes the table of the points that are left. */
export function parallelCoordinates(sweep, points, metrics, rows) {
  const axes = changing(sweep);
  if (points.length < 3) return [];
  const short = shortNames(axes);
  const quantities = metrics.map((m) => ({ id: m.key, name: m.name, of: (p) => p[m.key], show: m.show }));
  const shownKeys = new Set(kFirst.filter((key) => quantities.some((q) => q.id === key)));
  const columns = [...axes.map((a) => ({ id: `at ${a.name}`, name: short[a.name], of: (p) => String(p.at[a.name]), categories: a.values.map(String) })), ...quantities];
  const drawn = () => columns.filter((c) => c.categories || shownKeys.has(c.id));
  const best = answering(sweep);
  const logged = (c) => {
    const values = points.map(c.of).filter((v) => v > 0);
    return Math.max(...values) / Math.min(...values) > 30;
  };
  const line = (p) => ({ value: drawn().map((c) => c.of(p)), point: p.point, lineStyle: best.has(p.point) ? { color: hue('orange'), width: 3, opacity: 1 } : p.fits ? undefined : { color: hue('grey'), type: 'dashed' } });
  const ink = () => ({ color: css('--ink'), fontSize: 11, textBorderColor: css('--card'), textBorderWidth: 3 });
  const place = h('div', { id: 'brush-left' });
  // In a narrow window axes lie one above the other.
  const narrow = () => (document.getElementById('parallel-coordinates')?.clientWidth ?? 900) < 640;
  const make = () => ({
    parallel: { ...(narrow() ? { layout: 'vertical', left: 96, right: 26, top: 16, bottom: 30 } : { layout: 'horizontal', left: 56, right: 76, top: 52, bottom: 20 }), axisExpandable: false, parallelAxisDefault: { nameLocation: narrow() ? 'start' : 'end', nameGap: narrow() ? 8 : 18, nameTextStyle: { color: css('--ink'), fontSize: 12 }, nameTruncate: { maxWidth: narrow() ? 84 : 130 }, axisLine: { lineStyle: { color: css('--soft') } }, axisTick: { lineStyle: { color: css('--soft') } }, areaSelectStyle: { width: 18, borderColor: css('--accent'), color: css('--accent'), opacity: 0.25 } } },
    parallelAxis: drawn().map((c, dim) => ({
      id: c.id, dim, name: c.name, z: 5, ...(c.categories ? { type: 'category', data: c.categories } : { type: logged(c) ? 'log' : 'value', scale: true, splitNumber: narrow() ? 2 : 5 }),
      axisLabel: { ...ink(), hideOverlap: true, ...(c.categories ? {} : { formatter: (v) => c.show(v) }) },
    })),
    series: [{ type: 'parallel', smooth: 0.06, progressive: 500, lineStyle: { width: 1.6, opacity: 0.6, color: css('--accent') }, inactiveOpacity: 0.05, activeOpacity: 0.9, data: points.map(line) }],
  });
  const told = h('p', { role: 'status', id: 'brush-told' });
  let shown = -1;
  function left(kept) {
    told.textContent = kept.length === points.length ? `All ${count(points.length)} points. Drag along an axis, or set limits below.` : `${count(kept.length)} of ${count(points.length)} points are left.`;
    if (kept.length === shown && kept.length === points.length) return;
    shown = kept.length;
    place.replaceChildren(kept.length < points.length && kept.length > 0 ? rows(kept) : '');
  }
  const begun = (made) => {
    made.off('axisareaselected');
    made.on('axisareaselected', () => {
      const inside = made.getModel().getSeriesByIndex(0).getRawIndicesByActiveState('active');
      const any = drawn().some((_, i) => made.getModel().getComponent('parallelAxis', i)?.activeIntervals?.length);
      left(any ? inside.map((i) => points[i]) : points);
    });
  };
  const select = (column, intervals) => chartAt('parallel-coordinates')?.dispatchAction({ type: 'axisAreaSelect', parallelAxisId: column.id, intervals });
  const limits = h('div', { class: 'row', id: 'brush-fields' });
  for (const column of columns.filter((c) => c.categories)) {
    limits.append(h('label', {}, column.name, h('select', { onchange: ({ target }) => { const i = column.categories.indexOf(target.value); select(column, i < 0 ? [] : [[i - 0.4, i + 0.4]]); } }, h('option', { value: '' }, 'any'), column.categories.map((v) => h('option', { value: v }, v)))));
  }
  for (const column of quantities) {
    const values = points.map(column.of).filter(Number.isFinite);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const unit = column.show(most);
    const field = (which) => h('input', { type: 'number', step: 'any', min: 0, max: 100, value: which === 'from' ? 0 : 100, 'aria-label': `${column.name}, ${which}, % of the way from ${column.show(least)} to ${unit}`, onchange: () => set() });
    const from = field('from');
    const to = field('to');
    const set = () => {
      const at = (input, fallback) => least + ((most - least) * (input.value === '' || !input.validity.valid ? fallback : Number(input.value))) / 100;
      const [a, b] = [at(from, 0), at(to, 100)].sort((x, y) => x - y);
      shownAs.textContent = `${column.show(a)} to ${column.show(b)}`;
      const slack = 1e-9 * (Math.abs(most) + 1e-300);
      select(column, a <= least + slack && b >= most - slack ? [] : [[a - slack, b + slack]]);
    };
    const shownAs = h('span', {}, `${column.show(least)} to ${unit}`);
    const fields = h('fieldset', { class: 'limits' }, h('legend', {}, column.name), from, ' to ', to, ' % ', shownAs);
    fields.hidden = !shownKeys.has(column.id);
    column.fields = fields;
    limits.append(fields);
  }
  const toggles = h('div', { class: 'tools', role: 'group', 'aria-label': 'Quantities' }, quantities.map((q) => h('label', {}, h('input', { type: 'checkbox', ...(shownKeys.has(q.id) ? { checked: '' } : {}), onchange: ({ target }) => {
    reset();
    if (target.checked) shownKeys.add(q.id);
    else shownKeys.delete(q.id);
    q.fields.hidden = !target.checked;
    draw();
  } }), ` ${q.name}`)));
  const reset = () => {
    for (const column of drawn()) select(column, []);
    for (const list of limits.querySelectorAll('select')) list.value = '';
    for (const input of limits.querySelectorAll('input')) { input.value = input === input.parentElement.querySelector('input') ? 0 : 100; }
    left(points);
  };
  const clear = h('button', { type: 'button', id: 'brush-clear', onclick: reset }, 'Clear');
  left(points);
  const section = card('Parallel coordinates', 'Each line is a point of the sweep. Bold lines answer the goal, dashed lines do not fit.', toggles, chart('parallel-coordinates', make, 'tall', begun), told, h('details', { class: 'behind', id: 'brush' }, h('summary', {}, 'Limits by the keyboard'), limits), h('div', { class: 'buttons' }, clear), place);
  section.id = 'parallel-card';
  return [section];
}
