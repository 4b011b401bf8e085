// What exercises and the teacher's page share: texts, bars and solutions.
import { h } from '../dom.js';
import { digits } from '../format.js';

export const paragraphs = (text) => h('div', { class: 'text' }, text.trim().split(/\n\s*\n/).map((p) => h('p', {}, p.replaceAll('\n', ' '))));

export const inUnit = (value, unit) => `${digits(value, 3)}${unit && ` ${unit}`}`;

/** Bars of one unit, as a table that says the same. */
export function bars({ title, unit, bars: all }) {
  const most = Math.max(1e-300, ...all.map((b) => Math.abs(b.value)));
  return h('figure', { class: 'bars' }, h('figcaption', {}, title),
    h('table', {}, h('thead', { class: 'unseen' }, h('tr', {}, h('th', { scope: 'col' }, 'what'), h('th', { scope: 'col' }, 'value'), h('td', {}))),
      h('tbody', {}, all.map((b) => h('tr', {}, h('th', { scope: 'row', class: 'text' }, b.label), h('td', {}, inUnit(b.value, unit)), h('td', { class: 'bar' }, h('i', { style: `width:${(100 * Math.abs(b.value)) / most}%`, 'aria-hidden': 'true' })))))));
}

/** The answer, the measurement where there is one, why, and the picture. */
export function solution(e) {
  const unit = e.unit ? ` ${e.unit}` : '';
  return [
    h('p', {}, h('b', {}, `Simulated: ${digits(e.answer, 4)}${unit}`)),
    e.measured ? h('p', {}, `Measured: ${digits(e.measured.value, 4)}${unit} (${e.measured.source})`) : null,
    paragraphs(e.explanation), bars(e.picture),
  ].filter(Boolean);
}

/** [[chapter, exercises]] in the order of the list. */
export function chapters(all) {
  const known = new Map();
  for (const e of all) known.set(e.chapter, [...(known.get(e.chapter) ?? []), e]);
  return [...known];
}
