// One kernel from the inside: tiles, blocks on SMs over time, what an SM holds, bytes by level, and the equation.
import { card, h, number } from '../dom.js';
import { bandwidth, bytes, count, digits, flops, percent, rate, seconds, words } from '../format.js';
import { part } from '../palette.js';
import { table } from '../table.js';
import { behind, svg } from './draw.js';

const kMostWaves = 12;
const kMostSms = 16;
const kMostTiles = 48;

/** Blocks in launch order on the slot that comes free first: [sm, slot, wave]; all take the same time. */
export function placed(blocks, sms, perSm) {
  const slots = sms * perSm;
  return Array.from({ length: Math.min(blocks, slots * kMostWaves) }, (_, i) => {
    const at = i % slots;
    return { sm: at % sms, slot: Math.floor(at / sms), wave: Math.floor(i / slots) };
  });
}

function gantt(kernel) {
  const { blocks, sm_count: sms, occupancy } = kernel;
  const perSm = Math.max(1, occupancy.blocks_per_sm);
  const waves = Math.ceil(blocks / (sms * perSm));
  const shown = Math.min(waves, kMostWaves);
  const rows = Math.min(sms, kMostSms);
  const last = (blocks - (waves - 1) * sms * perSm) / (sms * perSm);
  // Of many SMs every n-th is drawn, the last one too.
  const drawn = Array.from({ length: rows }, (_, i) => Math.round((i * (sms - 1)) / Math.max(1, rows - 1)));
  const width = 760;
  const lane = Math.max(10, Math.min(18, perSm * 5));
  const left = 52;
  const x = (wave) => left + ((width - left - 8) * wave) / shown;
  const picture = svg('svg', { class: 'drawn', viewBox: `0 0 ${width} ${rows * (lane + 2) + 24}`, role: 'img', 'aria-label': `${count(blocks)} blocks on ${sms} SMs in ${waves} waves` });
  const rowOf = new Map(drawn.map((sm, row) => [sm, row]));
  for (const [sm, row] of rowOf) picture.append(svg('text', { x: 0, y: row * (lane + 2) + lane - 1 }, `SM ${sm}`));
  for (const { sm, slot, wave } of placed(blocks, sms, perSm)) {
    if (!rowOf.has(sm)) continue;
    const height = lane / perSm;
    picture.append(svg('rect', { x: x(wave) + 0.5, y: rowOf.get(sm) * (lane + 2) + slot * height + 0.25, width: Math.max(0.5, x(wave + 1) - x(wave) - 1), height: Math.max(0.5, height - 0.5), rx: 1.5, fill: part(wave) }));
  }
  const bottom = rows * (lane + 2) + 14;
  picture.append(svg('text', { x: left, y: bottom }, '0'), svg('text', { x: width - 8, y: bottom, 'text-anchor': 'end' }, shown < waves ? `wave ${shown} of ${count(waves)}` : seconds(kernel.time_s)));
  const tail = waves > 1 && last < 1 ? ` The last wave has ${percent(last)} of the blocks that fit.` : waves === 1 && last < 1 ? ` They fill ${percent(last)} of the places.` : '';
  const rowsBehind = () => Array.from({ length: shown }, (_, wave) => ({ wave: wave + 1, blocks: Math.min(sms * perSm, blocks - wave * sms * perSm) }));
  const section = card('Blocks on SMs', `${count(blocks)} blocks, ${count(perSm)} on each of ${count(sms)} SMs at once: ${count(waves)} wave${waves === 1 ? '' : 's'}.${tail} Drawn as if all blocks took equally long, every ${Math.max(1, Math.round(sms / rows))}th SM.`, picture,
    behind('gantt-numbers', 'Numbers', [{ title: 'wave', value: (r) => r.wave }, { title: 'blocks', value: (r) => r.blocks, show: count }, { title: 'places filled', value: (r) => r.blocks / (sms * perSm), show: percent }], rowsBehind));
  section.id = 'gantt';
  return section;
}

function tiles(kernel) {
  const t = kernel.tiles;
  if (t.kind !== 'matrix product') {
    const told = t.kind === 'attention' ? `${count(t.batch * t.heads)} heads of ${count(t.queries)} × ${count(t.keys)}, tiles of ${t.tile.join(' × ')}: ${count(t.count)} pieces of work.`
      : t.kind === 'memory-bound' ? `${count(t.elements)} elements, each block in ${digits(t.iterations)} dependent passes.` : 'A cost of its own.';
    return card('Work', told);
  }
  const columns = Math.min(t.columns, kMostTiles);
  const rows = Math.min(t.rows, kMostTiles);
  const side = Math.min(28, 480 / Math.max(columns, rows));
  const slots = kernel.sm_count * Math.max(1, kernel.occupancy.blocks_per_sm);
  const ratio = Math.max(0.25, Math.min(4, t.tile[0] / t.tile[1]));
  const picture = svg('svg', { class: 'drawn', style: `max-width:${Math.max(160, columns * side + 4)}px`, viewBox: `0 0 ${columns * side + 2} ${rows * side * ratio + 2}`, role: 'img', 'aria-label': `${t.rows} × ${t.columns} tiles` });
  for (let r = 0; r < rows; r += 1)
    for (let c = 0; c < columns; c += 1)
      picture.append(svg('rect', { x: c * side + 1, y: r * side * ratio + 1, width: Math.max(0.5, side - 1), height: Math.max(0.5, side * ratio - 1), fill: part(Math.floor((r * t.columns + c) / slots)), opacity: 0.85 }));
  const cut = rows < t.rows || columns < t.columns ? ` The first ${rows} × ${columns} are drawn.` : '';
  const splits = t.split_k > 1 ? `, k in ${t.split_k} pieces` : '';
  return card('Tiles', `${t.batch > 1 ? `${count(t.batch)} results of ` : 'A result of '}${count(t.m)} × ${count(t.n)} (k ${count(t.k)}) in tiles of ${t.tile[0]} × ${t.tile[1]}, ${t.tile[2]} of k at a time${splits}: ${count(t.count)} tiles (${t.family}). Colours are waves, in the order of rows.${cut}`, picture);
}

function occupancy({ occupancy: held, threads, registers, shared_bytes: shared }) {
  return card('What an SM holds', `${words(held.limit)} keep a further block out.`,
    h('div', { class: 'numbers', id: 'occupancy' },
      number('Blocks of an SM', count(held.blocks_per_sm), `${count(threads)} threads each`),
      number('Warps of an SM', `${count(held.warps_per_sm)} of ${count(held.most_warps_per_sm)}`, `occupancy ${percent(held.warps_per_sm / held.most_warps_per_sm)}`),
      number('Registers', count(registers), 'of a thread'),
      number('Shared memory', bytes(shared), 'of a block')));
}

function traffic({ traffic: t, time_s: time }) {
  const levels = [
    { level: 'operands, each byte once', read: t.operands_read_bytes, written: t.operands_written_bytes },
    { level: 'loaded by threads: L1 and shared memory', read: t.loaded_bytes, written: null },
    { level: 'asked of the L2', read: t.l2_bytes, written: null },
    { level: 'DRAM', read: t.dram_read_bytes, written: t.dram_write_bytes },
  ];
  const most = Math.max(1, ...levels.map((l) => l.read + (l.written ?? 0)));
  const bar = (l) => h('div', { class: 'meter', role: 'img', 'aria-label': `${l.level}: ${bytes(l.read + (l.written ?? 0))}` }, h('i', { style: `width:${(100 * (l.read + (l.written ?? 0))) / most}%` }));
  const shown = (v) => (v === null ? '–' : bytes(v));
  const columns = [
    { title: 'level', text: true, value: (l) => l.level }, { title: 'read', value: (l) => l.read, show: shown }, { title: 'written', value: (l) => l.written, show: shown },
    { title: 'a second', value: (l) => (l.read + (l.written ?? 0)) / time, show: bandwidth }, { title: '', text: true, class: 'wide', value: () => '', show: (_, l) => bar(l) },
  ];
  return card('Traffic by level', `${percent(t.l2_hit_rate)} of the reads hit the L2.`, table(columns, levels, { id: 'traffic' }));
}

function equation({ terms, time_s: time, limiter, math_utilization: share }) {
  const show = { FLOP: [flops, rate], B: [bytes, bandwidth] };
  const least = Math.max(0, ...terms.map((t) => t.time_s));
  const columns = [
    { title: 'resource', text: true, value: (t) => t.name },
    { title: 'work', value: (t) => t.amount, show: (v, t) => show[t.unit][0](v) },
    { title: '÷ peak', value: (t) => t.rate, show: (v, t) => show[t.unit][1](v) },
    { title: '= at least', value: (t) => t.time_s, show: seconds },
    { title: 'of the prediction', value: (t) => t.time_s / time, show: percent },
  ];
  const said = least > 0 ? `No resource alone needs more than ${seconds(least)}; the prediction is ${seconds(time)}, ${digits(time / least, 3)} times that, limited by ${words(limiter)}` : `The prediction is ${seconds(time)}, limited by ${words(limiter)}`;
  return card('The equation', `${said}${share > 0 ? `; its pipe works at ${percent(share)} of its peak` : ''}.`, table(columns, terms, { id: 'equation' }));
}

export function kernelDetail(kernel) {
  const title = h('section', { id: 'kernel' }, h('h1', {}, kernel.name), h('p', {}, `${kernel.shape} · ${seconds(kernel.time_s)} · limited by ${words(kernel.limiter)} · grid ${kernel.grid.join(' × ')}${kernel.clock_hz ? ` · ${digits(kernel.clock_hz / 1e6, 4)} MHz` : ''}`));
  const parts = [equation(kernel), kernel.blocks > 0 && kernel.tiles.kind !== 'fixed cost' ? gantt(kernel) : null, tiles(kernel), occupancy(kernel), traffic(kernel)].filter(Boolean);
  return [title, ...parts];
}
