// Elements from plain calls. Text is always set as text: nothing of the data is read as markup.

/** h('p', {class: 'x'}, 'text', element, ...) */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const card = (title, about, ...content) =>
  h('section', { class: 'card' }, h('h2', {}, title), h('p', {}, about), ...content);

/** One large card with smaller ones beside it. */
export function glance(large, beside) {
  large.classList.add('wide');
  return [large, h('div', { class: 'beside' }, beside)];
}

/** A number with what it is above and more about it below. */
export const number = (label, value, ...more) => h('div', { class: 'card number' }, h('span', {}, label), h('b', {}, value), ...more.map((m) => (typeof m === 'string' ? h('small', {}, m) : m)));

export function escape(text) {
  return String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
}
