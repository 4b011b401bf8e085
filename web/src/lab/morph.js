// New elements into the place of old ones, keeping what did not change: charts stay where they are drawn.
import { settle } from '../chart.js';

/** What listens to a person is always put in anew: it knows the answer that it was made of. So is a chart that comes new. */
const kListens = 'button, input, select, textarea, form, details, dialog, .scroll, .exercises, .flame, .picture, .chart';

function same(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && !(fresh.nodeType === 1 && fresh.matches(kListens));
}

function into(old, fresh) {
  if (fresh.nodeType === 1 && fresh.hasAttribute('data-stand-in')) {
    if (old.id === fresh.id) return;
    const holder = document.createElement('div');
    holder.append(fresh);
    old.replaceWith(settle(holder).firstChild);
    return;
  }
  // What is kept listens on as it stands.
  if (fresh.nodeType === 1 && fresh.hasAttribute('data-kept') && old.id === fresh.id) return;
  if (!same(old, fresh) || (old.nodeType === 1 && old.classList.contains('chart'))) {
    old.replaceWith(settle(fresh));
    return;
  }
  if (fresh.nodeType !== 1) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  children(old, [...fresh.childNodes]);
}

/** The children of `place` become those given. */
export function children(place, fresh) {
  const old = [...place.childNodes];
  fresh.forEach((node, i) => {
    if (i < old.length) into(old[i], node);
    else {
      place.append(node);
      settle(place);
    }
  });
  for (const node of old.slice(fresh.length)) node.remove();
}
