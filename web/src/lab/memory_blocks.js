// The allocator's blocks over the step, a map of its segments at one moment, and why memory ran out.
import { card, h, number } from '../dom.js';
import { bytes, count, percent, seconds, words } from '../format.js';
import { colour, css } from '../palette.js';
import { segmentsAt, stretches, timeOf, totals } from './allocator.js';
import { behind } from './draw.js';
import { picture } from './picture.js';
import { current, look } from './state.js';

const kLine = 15; // px of a line of the map
const kGap = 3;
const kBelow = 22; // px of the axis
const kMostRows = 300;

const looked = (key, otherwise) => current().look?.[key] ?? otherwise;

/** What is known of a block, in a line. */
function toldOf(all, categories, i) {
  const { blocks: b, makers } = all;
  const m = b.maker[i];
  const layer = makers.layer[m] >= 0 && !makers.module[m] ? `, block ${makers.layer[m]}` : '';
  const made = `made by ${words(makers.op[m])}${makers.op[m] === 'set-up' ? '' : ` (${makers.phase[m]})`}${layer}${makers.module[m] ? ` of ${makers.module[m]}` : ''}`;
  const several = b.count[i] > 1 ? ` in ${count(b.count[i])} blocks` : '';
  return `${bytes(b.bytes[i])}${several} of ${words(categories[b.category[i]])}, ${made}, ${lifeOf(all, i)}`;
}

function lifeOf(all, i) {
  const { from, to } = all.blocks;
  const at = (moment) => { const t = timeOf(all, moment); return t === null ? `allocation or free ${count(moment)}` : seconds(t * 1e-6); };
  if (from[i] === 0) return to[i] === null ? 'there throughout' : `there from before the begin to ${at(to[i])}`;
  return to[i] === null ? `from ${at(from[i])} on` : `from ${at(from[i])} to ${at(to[i])}`;
}

function legend(categories, used) {
  const dot = (name, fill) => h('span', {}, h('i', { class: 'dot', style: `background:${fill}` }), name);
  return h('p', { class: 'legend' }, categories.flatMap((name, c) => (used.has(c) ? [dot(words(name), colour(name))] : [])), dot('reserved, free', css('--line')));
}

/** Boxes of address by time. */
function overTime(all, categories, choice, moment) {
  const { blocks: b, segments: s, moments } = all;
  const timed = choice.along === 'time' && moments.first?.length;
  const last = moments.count - 1;
  const end = timed ? Math.max(choice.end_us, moments.at_us.at(-1)) : last;
  const x = (m) => (m === null || m > last ? end : timed ? timeOf(all, m) : m) / Math.max(end, 1e-9);
  const map = stretches(all, choice.pool);
  const inner = (height) => height - kBelow;
  const y = (place, height) => inner(height) * (1 - place / Math.max(1, map.bytes));
  const box = (rows, i, width, height) => {
    const place = map.place(rows.address[i]);
    if (place === null) return null;
    const [left, right] = [x(rows.from[i]) * width, x(rows.to[i]) * width];
    const [top, bottom] = [y(place + rows.bytes[i], height), y(place, height)];
    return { x: left, y: top, w: Math.max(0.5, right - left), h: Math.max(0.35, bottom - top) };
  };
  const axisTexts = (width, height) => {
    const shown = (share) => (timed ? seconds(share * end * 1e-6) : count(Math.round(share * end)));
    return [0, 0.25, 0.5, 0.75, 1].map((share) => ({ x: share * width, y: height - 6, text: shown(share), anchor: share === 0 ? 'start' : share === 1 ? 'end' : 'middle' }));
  };
  return {
    draw: (width, height) => {
      const boxes = [];
      const fills = categories.map(colour);
      const add = (rows, i, fill) => {
        const one = box(rows, i, width, height);
        if (!one) return;
        one.fill = fill;
        boxes.push(one);
      };
      for (let i = 0; i < s.bytes.length; i += 1) add(s, i, css('--line'));
      for (let i = 0; i < b.bytes.length; i += 1) add(b, i, fills[b.category[i]]);
      return { boxes, texts: axisTexts(width, height) };
    },
    over: (width, height) => {
      const [peak, now] = [x(all.peak.moment) * width, x(moment()) * width];
      const mark = (at, stroke, dash) => ({ x1: at, y1: 0, x2: at, y2: inner(height), stroke, dash });
      return {
        lines: [mark(peak, css('--bad'), true), mark(now, css('--ink'), false)],
        boxes: [{ x: Math.min(Math.max(peak, 18), width - 18) - 18, y: 0, w: 36, h: 16, fill: css('--card') }],
        texts: [{ x: Math.min(Math.max(peak, 18), width - 18), y: 12, text: 'peak', anchor: 'middle', fill: css('--bad') }],
      };
    },
    tell: (px, py, width, height) => {
      for (let i = b.bytes.length - 1; i >= 0; i -= 1) {
        const one = box(b, i, width, height);
        if (one && px >= one.x && px <= one.x + one.w && py >= one.y && py <= one.y + one.h) return { text: toldOf(all, categories, i), box: one };
      }
      return null;
    },
    momentAt: (px, width) => {
      const at = Math.max(0, Math.min(1, px / width)) * end;
      if (!timed) return Math.round(at);
      let m = 0;
      for (let i = 0; i < moments.first.length && moments.at_us[i] <= at; i += 1) m = moments.first[i];
      return m;
    },
  };
}

/** Segments in lines of one scale, each with its blocks; what is free stays grey. */
function mapOf(all, categories, held, choice) {
  const shown = held.filter((segment) => choice.pool === 'all' || segment.pool === choice.pool).sort((a, b) => (a.pool === b.pool ? a.address - b.address : a.pool < b.pool ? 1 : -1));
  const pieces = (width, height) => {
    const lines = Math.max(1, Math.floor(height / (kLine + kGap)));
    // Each segment gives up two pixels, so that its ends are seen.
    const room = Math.max(width * 0.2, width * lines - 2 * shown.length);
    const scale = room / Math.max(1, shown.reduce((sum, segment) => sum + segment.bytes, 0));
    const out = [];
    let pen = 0;
    const lay = (begin, length, what) => {
      let left = length;
      let at = begin;
      while (left > 1e-6) {
        const line = Math.floor(at / width + 1e-9);
        const w = Math.min(left, (line + 1) * width - at);
        if (w <= 1e-9) { at = (line + 1) * width; continue; }
        out.push({ x: at - line * width, y: line * (kLine + kGap), w: Math.max(0.4, w), h: kLine, ...what });
        at += w;
        left -= w;
      }
    };
    for (const segment of shown) {
      lay(pen, segment.bytes * scale, { segment, fill: css('--line') });
      for (const i of segment.blocks) lay(pen + (all.blocks.address[i] - segment.address) * scale, all.blocks.bytes[i] * scale, { segment, block: i, fill: colour(categories[all.blocks.category[i]]) });
      pen += segment.bytes * scale + 2;
    }
    return out;
  };
  return {
    draw: (width, height) => ({ boxes: pieces(width, height) }),
    tell: (px, py, width, height) => {
      const found = pieces(width, height).filter((one) => px >= one.x && px <= one.x + one.w && py >= one.y && py <= one.y + one.h).at(-1);
      if (!found) return null;
      const { segment } = found;
      const where = `segment of ${bytes(segment.bytes)}, ${segment.pool} pool${segment.stream ? `, stream ${segment.stream}` : ''}: ${bytes(segment.used)} in ${count(segment.blocks.length)} entries, ${bytes(segment.bytes - segment.used)} free`;
      return { text: found.block === undefined ? `Free. ${where}` : `${toldOf(all, categories, found.block)}. ${where}`, box: found };
    },
  };
}

const kSegmentColumns = [
  { title: 'from address', value: (s) => s.address, show: bytes }, { title: 'bytes', value: (s) => s.bytes, show: bytes }, { title: 'pool', text: true, value: (s) => s.pool }, { title: 'stream', value: (s) => s.stream },
  { title: 'in use', value: (s) => s.used, show: bytes }, { title: 'entries', value: (s) => s.blocks.length, show: count }, { title: 'free', value: (s) => s.bytes - s.used, show: bytes },
  { title: 'gaps', value: (s) => s.free.length, show: count }, { title: 'largest gap', value: (s) => Math.max(0, ...s.free.map((f) => f.bytes)), show: bytes },
];

function blockColumns(all, categories) {
  const { blocks: b, makers } = all;
  return [
    { title: 'category', text: true, value: (i) => words(categories[b.category[i]]) }, { title: 'bytes', value: (i) => b.bytes[i], show: bytes }, { title: 'asked for', value: (i) => b.requested[i], show: bytes }, { title: 'blocks', value: (i) => b.count[i], show: count },
    { title: 'made by', text: true, value: (i) => words(makers.op[b.maker[i]]) }, { title: 'phase', text: true, value: (i) => makers.phase[b.maker[i]] }, { title: 'part', text: true, class: 'name', value: (i) => makers.module[b.maker[i]] },
    { title: 'life', text: true, value: (i) => lifeOf(all, i) },
  ];
}

function chooser(id, label, options, value, changed) {
  const select = h('select', { id, onchange: ({ target }) => changed(target.value) }, options.map(([key, title]) => h('option', { value: key, ...(key === value && { selected: '' }) }, title)));
  return h('label', {}, `${label} `, select);
}

/** Blocks as rows of a file: everything the picture shows. */
export function blockRows(all, categories) {
  const { blocks: b, makers } = all;
  return [['address', 'bytes', 'requested', 'from', 'to', 'category', 'blocks', 'op', 'phase', 'layer', 'module'],
    ...b.bytes.map((size, i) => [b.address[i], size, b.requested[i], b.from[i], b.to[i] ?? '', categories[b.category[i]], b.count[i], makers.op[b.maker[i]], makers.phase[b.maker[i]], makers.layer[b.maker[i]], makers.module[b.maker[i]]])];
}

/** Why there was no room: what was asked for, what there was. */
export function shortage({ memory, blocks }) {
  const f = blocks?.failure;
  if (!f) return [];
  const where = `${words(f.op || 'the set-up')} (${words(f.phase)}${f.layer >= 0 ? `, block ${f.layer}` : ''})`;
  const fragments = f.free_bytes >= f.requested_bytes
    ? `${bytes(f.free_bytes)} are free in the segments, more than was asked for, but in pieces: the largest is ${bytes(f.largest_free_bytes)}. Memory is fragmented.`
    : f.free_blocks > 0 ? `Of what is reserved ${bytes(f.free_bytes)} are free, in ${count(f.free_blocks)} block${f.free_blocks === 1 ? '' : 's'}; the largest has ${bytes(f.largest_free_bytes)}.` : 'Nothing of what is reserved is free.';
  const section = card('Out of memory', `In step ${f.step} ${where} asks for ${bytes(f.requested_bytes)} of ${words(f.category)}. No free block holds it, so the device is asked for a segment of ${bytes(f.segment_bytes)} and has ${bytes(f.device_free_bytes)}: ${bytes(f.missing_bytes)} are missing. ${fragments}`,
    h('div', { class: 'numbers' },
      number('Asked for', bytes(f.requested_bytes), words(f.category)), number('Largest free block', bytes(f.largest_free_bytes), `of ${count(f.free_blocks)} free, ${bytes(f.free_bytes)} together`),
      number('In use', bytes(f.allocated_bytes), `${percent(f.allocated_bytes / Math.max(1, f.reserved_bytes))} of what is reserved`), number('Reserved', bytes(f.reserved_bytes), `and ${bytes(f.context_bytes)} of context, of ${bytes(f.capacity_bytes)}`),
      number('Left on the device', bytes(f.device_free_bytes)), number('Would be needed', bytes(memory?.needed_bytes ?? 0), 'with room without end')));
  section.id = 'shortage';
  return [section];
}

function momentText(all, held, moment) {
  const sum = totals(held);
  const t = timeOf(all, moment);
  return `${count(moment)} of ${count(all.moments.count - 1)}${t === null ? '' : `, ${seconds(t * 1e-6)}`}: ${bytes(sum.used)} in use of ${bytes(sum.reserved)} reserved in ${count(sum.segments)} segments; ${bytes(sum.free)} free in ${count(sum.freeBlocks)} gaps, the largest ${bytes(sum.largest)}`;
}

/** Blocks over time and the map of one moment. `p` is a page with its blocks. */
export function memoryBlocks({ prediction, blocks: all, categories }) {
  if (!all) return [card('Blocks of the allocator', 'The recording holds no single allocations.')];
  const last = all.moments.count - 1;
  const first = all.failure ? last : all.peak.moment;
  let moment = Math.min(last, looked('moment', first));
  const choice = { along: looked('along', all.moments.first ? 'time' : 'order'), pool: looked('pool', 'all'), end_us: prediction.step.time_s * 1e6 };
  const used = new Set(all.blocks.category);
  let held = segmentsAt(all, moment);
  let time = overTime(all, categories, choice, () => moment);
  let map = mapOf(all, categories, held, choice);
  const blocksPicture = picture('blocks', {
    label: `Blocks of the allocator, address by ${choice.along}`, height: 340, draw: (...a) => time.draw(...a), over: (...a) => time.over(...a), tell: (...a) => time.tell(...a), click: (x, _, width) => move(time.momentAt(x, width)),
  });
  const mapPicture = picture('segments', { label: 'Segments of the allocator at the chosen moment', height: 300, draw: (...a) => map.draw(...a), tell: (...a) => map.tell(...a) });
  const output = h('output', { for: 'moment', id: 'moment-told' });
  const slider = h('input', { type: 'range', id: 'moment', min: 0, max: last, step: 1, value: moment, oninput: ({ target }) => move(Number(target.value)) });
  const behindMap = () => behind('segments-numbers', 'Segments at this moment', kSegmentColumns, () => held);
  const behindBlocks = () => behind('blocks-numbers', `The ${kMostRows} largest entries at this moment`, blockColumns(all, categories), () => held.flatMap((s) => s.blocks).sort((a, b) => all.blocks.bytes[b] - all.blocks.bytes[a]).slice(0, kMostRows));
  let tables = [behindBlocks(), behindMap()];
  function tellMoment() {
    output.textContent = momentText(all, held, moment);
    slider.setAttribute('aria-valuetext', output.textContent);
  }
  function renew() {
    held = segmentsAt(all, moment);
    map = mapOf(all, categories, held, choice);
    tellMoment();
    blocksPicture.refresh();
    mapPicture.redraw();
    if (tables.some((one) => one.open)) {
      const fresh = [behindBlocks(), behindMap()];
      tables.forEach((one, i) => one.replaceWith(fresh[i]));
      tables = fresh;
    }
  }
  let waits = false;
  function move(to) {
    moment = Math.max(0, Math.min(last, to));
    slider.value = moment;
    look('moment', moment === first ? undefined : moment);
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => { waits = false; renew(); });
  }
  function choose(key, value, otherwise) {
    choice[key] = value;
    look(key, value === otherwise ? undefined : value);
    time = overTime(all, categories, choice, () => moment);
    blocksPicture.redraw();
    renew();
  }
  tellMoment();
  const cut = all.moments.cut_before + all.moments.cut_after > 0 ? ` Of ${count(last + all.moments.cut_before + all.moments.cut_after)} allocations and frees those around the peak are drawn.` : '';
  const about = all.failure ? 'The picture spans the run from its start to the request that failed.' : 'The picture spans one steady step.';
  const controls = h('div', { class: 'row' },
    all.moments.first ? chooser('along', 'Along', [['time', 'time'], ['order', 'order of allocations']], choice.along, (v) => choose('along', v, 'time')) : null,
    chooser('pool', 'Pool', [['all', 'both'], ['large', 'large'], ['small', 'small (requests up to 1 MiB)']], choice.pool, (v) => choose('pool', v, 'all')));
  const over = card('Blocks over time', `${about} Each box is a block: upwards its address (segments one above the other), to the right its life. A click chooses the moment of the map below.${cut}`, controls, legend(categories, used), blocksPicture.element, tables[0]);
  over.id = 'blocks-card';
  const segments = card('Segments at a moment', 'Each bar is a segment that the allocator holds, all at one scale; grey parts are free. Much grey in small pieces is fragmentation.',
    h('div', { class: 'moment' }, h('label', { for: 'moment' }, 'Moment'), slider, h('button', { type: 'button', id: 'to-peak', onclick: () => move(all.peak.moment) }, 'Peak')),
    h('p', { class: 'told' }, output), mapPicture.element, tables[1]);
  segments.id = 'segments-card';
  return [over, segments];
}
