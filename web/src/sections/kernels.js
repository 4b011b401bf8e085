// Every kernel and shape of the step.
import { card, h } from '../dom.js';
import { bandwidth, count, digits, percent, rate, seconds, words } from '../format.js';
import { colour } from '../palette.js';
import { table } from '../table.js';

/** `pick`, where it is given, is called with the place of the kernel that a person chose. */
export function kernels({ groups }, pick) {
  const total = groups.reduce((sum, g) => sum + g.time_s, 0);
  const each = (g) => g.time_s / g.count;
  const columns = [
    { title: 'kernel', text: true, class: 'name', value: (g) => g.name, show: (name, g) => [h('i', { class: 'dot', style: `background:${colour(g.class)}` }), pick ? h('button', { type: 'button', class: 'link', onclick: () => pick(groups.indexOf(g)) }, name) : name] },
    { title: 'shape', text: true, class: 'name', value: (g) => g.shape },
    ...(groups.some((g) => g.modules?.length) ? [{ title: 'part', text: true, class: 'name', value: (g) => (g.modules ?? []).map(words).join(', ') }] : []),
    { title: 'count', value: (g) => g.count, show: count },
    { title: 'total', value: (g) => g.time_s, show: seconds },
    { title: 'share', value: (g) => g.time_s / total, show: percent },
    { title: 'each', value: each, show: seconds },
    { title: 'limiter', text: true, value: (g) => g.limiter, show: words },
    { title: 'FLOP/s', value: (g) => g.flops / each(g), show: (v) => (v > 0 ? rate(v) : '–') },
    { title: 'DRAM', value: (g) => g.dram_bytes / each(g), show: (v) => (v > 0 ? bandwidth(v) : '–') },
    { title: 'L2 hits', value: (g) => g.l2_hit_rate, show: percent },
    { title: 'occupancy', value: (g) => g.occupancy, show: percent },
    { title: 'waves', value: (g) => g.waves, show: (waves) => digits(waves) },
  ];
  const about = 'Click a column head to sort. Rates are those of one launch; L2 hits count its reads.';
  return card('Kernels', about, table(columns, groups, { id: 'kernels', sort: columns.findIndex((c) => c.title === 'total'), search: (g) => `${g.name} ${g.shape} ${(g.modules ?? []).join(' ')} ${g.class} ${g.limiter} ${words(g.limiter)}`, placeholder: 'kernel, shape or limiter' }));
}
