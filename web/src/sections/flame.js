// Time by part of the network: a flame graph whose boxes stand on the part that they belong to. A click makes one as wide as the
// picture.
import { behind } from '../behind.js';
import { card, h } from '../dom.js';
import { count, percent, seconds } from '../format.js';

/** {name, title, time, forward, backward, kernels, parts} of everything, from the list of modules by their dotted names. */
export function treeOf(modules, busy) {
  const root = { name: '', title: 'all kernels', time: busy, forward: 0, backward: 0, kernels: 0, parts: [] };
  const known = new Map([['', root]]);
  for (const m of modules) {
    const dot = m.module.lastIndexOf('.');
    const above = known.get(dot < 0 ? '' : m.module.slice(0, dot)) ?? root;
    const part = { name: m.module, title: m.module.slice(dot + 1), time: m.time_s, forward: m.forward_s, backward: m.backward_s, kernels: m.kernels, parts: [] };
    above.parts.push(part);
    known.set(m.module, part);
  }
  return root;
}

const levels = (node) => 1 + Math.max(0, ...node.parts.map(levels));

export function flame({ prediction }) {
  const { modules } = prediction;
  if (!modules?.length) return [];
  const busy = Math.max(prediction.step.gpu_busy_s, modules.filter((m) => !m.module.includes('.')).reduce((sum, m) => sum + m.time_s, 0));
  const root = treeOf(modules, busy);
  const place = h('div', { class: 'flame', role: 'group', 'aria-label': 'Flame graph' });
  const told = h('p', { role: 'status' });
  const least = matchMedia('(max-width: 900px)').matches ? 9 : 3; // percent of the width that holds a name
  function show(top) {
    told.textContent = `${top.name || 'All'}: ${seconds(top.time)}, ${percent(top.time / busy)} of all kernels.`;
    place.replaceChildren();
    const box = (node, left, width, level) => {
      if (width < 0.05) return;
      const label = `${node.name || node.title}: ${seconds(node.time)} (${percent(node.time / busy)})${node.kernels ? `, ${count(node.kernels)} kernels, forward ${seconds(node.forward)}, backward ${seconds(node.backward)}` : ''}`;
      place.append(h('button', { type: 'button', class: `level-${level % 3}`, style: `left:${left}%;width:${width}%;top:${level * 26}px`, title: label, 'aria-label': `${node.title}, ${label}`, onclick: () => { show(node === top ? root : node); place.querySelector('button').focus(); } }, width > least ? node.title : ''));
      let at = left;
      for (const part of node.parts) {
        const wide = (width * part.time) / Math.max(node.time, 1e-15);
        box(part, at, wide, level + 1);
        at += wide;
      }
    };
    box(top, 0, 100, 0);
    place.style.height = `${levels(top) * 26}px`;
  }
  show(root);
  const columns = [
    { title: 'part', text: true, class: 'name', value: (m) => m.module }, { title: 'kernels', value: (m) => m.kernels, show: count }, { title: 'time', value: (m) => m.time_s, show: seconds },
    { title: 'share', value: (m) => m.time_s / busy, show: percent }, { title: 'forward', value: (m) => m.forward_s, show: seconds }, { title: 'backward', value: (m) => m.backward_s, show: seconds },
  ];
  const section = card('Time by part of the network', 'The width of a box is its share of the kernels’ time, forward and backward. The boxes below it are its parts. Click a box to zoom in, and the top box to zoom out.', place, told, behind('flame-numbers', 'Numbers', columns, () => modules));
  section.id = 'flame';
  return [section];
}
